"""Plan a comparison from a pilot: the seeds that a verdict needs at each size, and the time.

The plan uses only the spread of the pilot's scores, never which arm is ahead: it must not depend
on the answer (an internal pilot: Wittes and Brittain 1990).
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from statistics import fmean
from typing import NamedTuple

import numpy as np
from scipy import special

from lupi.design import Looks
from lupi.errors import LupiError
from lupi.records import Arm, ComparisonRecord
from lupi.verdict.roles import controls, is_candidate
from lupi.verdict.scores import Scores, read_scores
from lupi.verdict.statistics.paired import Floats
from lupi.verdict.statistics.power import chance_to_help, fewest_seeds
from lupi.verdict.summary import rule_of
from lupi.verdict.verdict import seeds_needed

CONFIDENCE = 0.8
"""Confidence of the range of the spread, and so of the number of seeds."""
SEEDS_DRAWN = (4, 6, 7, 8, 9, 10, 12, 16, 20, 24, 32)
"""Numbers of seeds at which the power curve is computed."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Spread of the scores of an arm and its controls, without the effect of the seed."""

    size: int
    """The size at which it was measured."""
    noise: float
    """Standard deviation of the part of a score that is specific to an arm."""
    n_seeds: int
    freedom: int
    """Degrees of freedom of the estimate."""

    def range(self) -> tuple[float, float]:
        """Return a confidence interval of the noise, from a chi-squared distribution."""
        tail = (1 - CONFIDENCE) / 2
        quantiles = special.chdtri(self.freedom, [tail, 1 - tail])
        low, high = self.noise * np.sqrt(self.freedom / quantiles)
        return float(low), float(high)


@dataclass(frozen=True, slots=True)
class SizePlan:
    """The seeds that one arm needs at one size."""

    arm: str
    size: int
    measured_at: int
    """The size at which the spread was measured."""
    n_pilot_seeds: int
    spread: float
    """Standard deviation over seeds of a paired difference."""
    power: float
    """Power with the seeds of the comparison."""
    power_range: tuple[float, float]
    seeds: int | None
    """Seeds needed at this size, tested together with the others; None if too many to simulate."""
    seeds_range: tuple[int | None, int | None]
    seeds_alone: int | None
    """Seeds needed if this were the only size."""
    curve: tuple["Power", ...]
    """Power by number of seeds, with all sizes tested together."""


class Power(NamedTuple):
    """Probability of "helps" with a number of seeds, and its range."""

    n_seeds: int
    power: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class SeedPlan:
    """The seeds and the time that a comparison needs to detect a gain."""

    comparison: str
    metric: str
    gain: float
    power: float
    n_seeds: int
    """Seeds of the comparison."""
    seeds: int | None
    """Seeds needed for every arm at every size."""
    seeds_range: tuple[int | None, int | None]
    sizes: tuple[SizePlan, ...]
    n_runs: int
    """Runs with the seeds of the comparison."""
    n_finished: int
    seconds_per_seed: float
    """Time of one worker for all arms and sizes."""
    seconds_left: float
    """Time of one worker for the runs without a result."""


def plan_seeds(record: ComparisonRecord, gain: float, power: float) -> SeedPlan:
    """Return the plan for detecting a gain, given in the unit of the metric.

    A size without pilot runs is assumed to have the spread of the nearest size with runs.
    """
    scores = read_scores(record)
    candidates = [arm for arm in record.arms if is_candidate(arm)]
    if not candidates:
        raise LupiError("nothing to plan: no arm trains with the real x* and predicts without it")
    rows = [row for arm in candidates for row in _plan_arm(arm, record, scores, gain, power)]
    seconds = {
        (arm.name, size): _seconds(record, arm.name, size)
        for arm in record.arms
        for size in scores.sizes
    }
    missing = [run.plan for run in record.runs if run.result is None]
    return SeedPlan(
        comparison=str(record.settings.get("name") or record.folder.name),
        metric=record.metric.name,
        gain=gain,
        power=power,
        n_seeds=len(scores.seeds),
        seeds=_most([row.seeds for row in rows]),
        seeds_range=(
            _most([row.seeds_range[0] for row in rows]),
            _most([row.seeds_range[1] for row in rows]),
        ),
        sizes=tuple(rows),
        n_runs=len(record.runs),
        n_finished=len(record.finished),
        seconds_per_seed=sum(seconds.values()),
        seconds_left=sum(seconds[run.arm, run.size] for run in missing),
    )


def too_few_seeds(
    arms: Sequence[Arm], n_sizes: int, n_seeds: int, looks: Looks | None
) -> Iterator[str]:
    """Yield a warning if the seeds are too few for a verdict, or for a verdict on any question."""
    n_questions = n_sizes * sum(map(is_candidate, arms))
    share = (looks or Looks((n_seeds,))).first_share
    if not n_questions:
        return
    fewest, enough = seeds_needed(1, share), seeds_needed(n_questions, share)
    if n_seeds < fewest:
        yield (
            f"underpowered: {n_seeds} seeds can't give a verdict on x*; it needs at least {fewest}"
            + (f", or {enough} to answer any of {n_questions} questions" if enough > fewest else "")
        )
    elif n_seeds < enough:
        yield (
            f"with {n_seeds} seeds a verdict needs most of the {n_questions} questions (arms x "
            f"sizes) to have a clear answer; {enough} seeds are enough to answer any of them"
        )


def _plan_arm(
    arm: Arm, record: ComparisonRecord, scores: Scores, gain: float, power: float
) -> list[SizePlan]:
    rivals = [rival.name for rival in controls(arm, record.arms)]
    sizes = [size for size in scores.sizes if scores.runs[arm.name, size].is_planned]
    n_seeds = len(scores.seeds)
    spreads = _spreads([arm.name, *rivals], sizes, scores)
    low, high = zip(*(spread.range() for spread in spreads), strict=True)
    rule = rule_of(record, n_seeds)
    correlations = [rule.correlation(size) for size in sizes]
    n_other_arms = sum(map(is_candidate, record.arms)) - 1

    def chances(noise: Sequence[float]) -> Callable[[int], Floats]:
        chance = partial(chance_to_help, gain, noise, len(rivals))
        return cache(partial(chance, correlations=correlations, n_other_arms=n_other_arms))

    expected = chances([spread.noise for spread in spreads])
    best, worst = chances(low), chances(high)
    rows = []
    for i, (size, spread) in enumerate(zip(sizes, spreads, strict=True)):
        single = partial(chance_to_help, gain, [spread.noise], len(rivals))
        alone = cache(partial(single, correlations=correlations[i : i + 1]))
        rows.append(
            SizePlan(
                arm=arm.name,
                size=size,
                measured_at=spread.size,
                n_pilot_seeds=spread.n_seeds,
                spread=math.sqrt(2) * spread.noise,
                power=float(expected(n_seeds)[i]),
                power_range=(float(worst(n_seeds)[i]), float(best(n_seeds)[i])),
                seeds=fewest_seeds(expected, i, power),
                seeds_range=(fewest_seeds(best, i, power), fewest_seeds(worst, i, power)),
                seeds_alone=fewest_seeds(alone, 0, power),
                curve=tuple(
                    Power(n, *(float(chance(n)[i]) for chance in (expected, worst, best)))
                    for n in SEEDS_DRAWN
                ),
            )
        )
    return rows


def _spreads(names: Sequence[str], sizes: Sequence[int], scores: Scores) -> list[Spread]:
    """Return the spread at each size, or at the nearest size with two common seeds."""
    found = [spread for size in sizes if (spread := _spread(names, size, scores))]
    if not found:
        raise LupiError(
            f"a plan needs two finished seeds of {', '.join(names)} at some size; "
            "see failure.txt in the folders of runs without a result"
        )
    by_size = {spread.size: spread for spread in found}
    return [by_size[_nearest(by_size, size)] for size in sizes]


def _nearest(sizes: Iterable[int], wanted: int) -> int:
    return min(sizes, key=lambda size: abs(math.log(size / wanted)))


def _spread(names: Sequence[str], size: int, scores: Scores) -> Spread | None:
    """Return the spread after subtracting arm means and seed means from the scores."""
    seeds = scores.common_seeds(*((name, size) for name in names))
    if len(seeds) < 2:
        return None
    table = np.array([scores.gains(name, size, seeds) for name in names])  # (arm, seed)
    rest = table - table.mean(0) - table.mean(1, keepdims=True) + table.mean()
    freedom = (len(names) - 1) * (len(seeds) - 1)
    return Spread(size, math.sqrt((rest**2).sum() / freedom), len(seeds), freedom)


def _seconds(record: ComparisonRecord, arm: str, size: int) -> float:
    """Return the mean time of a run; without finished runs, estimate it from the nearest size."""
    times: dict[int, list[float]] = {}
    for run in record.finished:
        if run.plan.arm == arm:
            rows, _ = run.metrics()
            times.setdefault(run.plan.size, []).append(sum(row.get("seconds", 0) for row in rows))
    if not times:
        return 0.0
    nearest = _nearest(times, size)
    return fmean(times[nearest]) * max(1.0, size / nearest)


def _most(seeds: Sequence[int | None]) -> int | None:
    return None if None in seeds else max(n for n in seeds if n is not None)
