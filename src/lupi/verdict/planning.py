"""Plan a comparison from a pilot: the seeds that a verdict needs at each size, and the time.

The plan uses only the spread of the pilot's scores, never which arm is ahead: it must not depend
on the answer (an internal pilot: Wittes and Brittain 1990). Power is found by simulation:

    score of an arm for a seed = effect of the seed on all arms + noise of the arm

The effect of the seed cancels in paired differences, so only the noise of the arms is simulated.
The simulated comparisons are judged by the test of `statistics.py`, in the planned order of
`questions`. One arm has the gain, and so have all arms that these questions are about.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from scipy import special

from lupi.design import Looks
from lupi.errors import LupiError
from lupi.records import Arm, ComparisonRecord
from lupi.verdict.roles import MEAN, Key, controls, is_candidate
from lupi.verdict.scores import Scores, read_scores
from lupi.verdict.statistics import SEED, Floats, seeds_needed, simulated_claims
from lupi.verdict.summary import mean_seconds, rule_of
from lupi.verdict.units import count

CONFIDENCE = 0.8
"""Confidence of the range of the spread, and so of the number of seeds."""
N_SIMULATIONS = 500
"""Number of simulations; a power of 80 % is then accurate to within 4 points."""
MOST_SEEDS = 64
N_PATTERNS = 2**9
"""Largest number of sign patterns in a simulation."""
MOST_NUMBERS = 2**22
"""Statistics held in memory at once."""
FIRST_SHARE = Looks((1,)).first_share
SEEDS_DRAWN = (4, 6, 7, 8, 9, 10, 12, 16, 20, 24, 32)
"""Numbers of seeds at which the power curve is computed."""

Asked = tuple[int, int]
"""A question: the number of an arm, and the place of a size (after the last: their mean)."""


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
    """-1 is the mean over all sizes, which is planned only if `questions` ask for it."""
    measured_at: int
    """The size at which the spread was measured."""
    n_pilot_seeds: int
    spread: float
    """Standard deviation over seeds of a paired difference."""
    power: float
    """Power with the seeds of the comparison."""
    power_range: tuple[float, float]
    seeds: int | None
    """Seeds needed at this size, tested with the others and in the planned order of questions;
    None if too many to simulate."""
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
    """Seeds needed for every planned question; without any, for every arm at every size."""
    seeds_range: tuple[int | None, int | None]
    sizes: tuple[SizePlan, ...]
    n_runs: int
    """Runs with the seeds of the comparison."""
    n_finished: int
    seconds_per_seed: float
    """Time of one worker for all arms and sizes."""
    seconds_left: float
    """Time of one worker for the runs without a result."""
    questions: tuple[str, ...] = ()
    """Questions that are asked first, in this order."""


def plan_seeds(record: ComparisonRecord, gain: float, power: float) -> SeedPlan:
    """Return the plan for detecting a gain, given in the unit of the metric.

    A size without pilot runs is assumed to have the spread of the nearest size with runs.
    """
    scores = read_scores(record)
    candidates = [arm for arm in record.arms if is_candidate(arm)]
    if not candidates:
        raise LupiError("nothing to plan: no arm trains with the real x* and predicts without it")
    rows = [row for arm in candidates for row in _plan_arm(arm, record, scores, gain, power)]
    order = rule_of(record, len(scores.seeds)).order
    asked = [row for row in rows if not order or (row.arm, row.size) in order]
    known = mean_seconds(record)
    seconds = {
        (arm.name, size): _seconds(known, arm.name, size)
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
        seeds=_most([row.seeds for row in asked]),
        seeds_range=(
            _most([row.seeds_range[0] for row in asked]),
            _most([row.seeds_range[1] for row in asked]),
        ),
        sizes=tuple(rows),
        n_runs=len(record.runs),
        n_finished=len(record.finished),
        seconds_per_seed=sum(seconds.values()),
        seconds_left=sum(seconds[run.arm, run.size] for run in missing),
        questions=tuple(record.settings.get("questions") or ()),
    )


def too_few_seeds(arms: Sequence[Arm], n_seeds: int, looks: Looks | None) -> Iterator[str]:
    """Yield a warning if the seeds are too few for any verdict on x*."""
    needed = seeds_needed((looks or Looks((n_seeds,))).first_share)
    if any(map(is_candidate, arms)) and n_seeds < needed:
        yield (
            f"underpowered: {count(n_seeds, 'seed')} can't give a verdict on x*; it needs at least "
            f"{needed}"
        )


def chance_to_help(
    gain: float,
    noise: Sequence[float],
    n_controls: int,
    n_seeds: int,
    correlations: Sequence[float] | None = None,
    n_other_arms: int = 0,
    order: Sequence[Asked] = (),
) -> Floats:
    """Return the probability of "helps" at each size, for a gain over every control.

    With several sizes, the last one is that of the mean over all sizes.

    Args:
        gain: In the unit of the metric, higher is better; the same at every size.
        noise: Standard deviation of the noise of an arm, for each size.
        n_controls: Number of controls.
        n_seeds: Number of seeds of each arm.
        correlations: Correlation between two seeds, for each size; by default 0.
        n_other_arms: Number of other arms with x*, which are in the same family. They have the gain
            if they are asked about in `order`, otherwise none.
        order: Questions that are asked first. Arm 0 is the one whose probability is returned.
    """
    rng = np.random.default_rng(SEED)
    correlation = np.asarray(correlations or [0.0] * len(noise))
    n_arms, n_sizes = 1 + n_other_arms, len(noise)
    n_places = n_sizes + (n_sizes > 1)  # the mean over sizes belongs to the family
    by_place = np.r_[correlation, correlation.max()][:n_places]
    n_rows = n_arms * n_controls * n_places
    at_once = max(1, MOST_NUMBERS // (n_rows * min(N_PATTERNS, 1 << n_seeds)))
    spread = np.asarray(noise)[:, None]
    arm_of_row = np.repeat(np.arange(n_arms), n_controls)
    questions = (arm_of_row[:, None] * n_places + np.arange(n_places)).ravel().tolist()
    asked = [arm * n_places + place for arm, place in order]
    gaining = sorted({0, *(arm for arm, _ in order)})
    n_helps = np.zeros(n_places)
    for start in range(0, N_SIMULATIONS, at_once):
        n_families = min(at_once, N_SIMULATIONS - start)
        shape = (n_families, n_arms + n_controls, n_sizes, n_seeds)
        scores = rng.normal(0, spread, size=shape)
        # The correlation between seeds does not show in their spread.
        common = rng.normal(0, spread, size=(*shape[:-1], 1))
        scores += common * np.sqrt(correlation / (1 - correlation))[:, None]
        scores[:, gaining] += gain
        arms, rivals = scores[:, :n_arms, None], scores[:, None, n_arms:]
        tables = (arms - rivals).reshape(n_families, -1, n_sizes, n_seeds)
        tables = np.concatenate([tables, tables.mean(2, keepdims=True)], axis=2)[:, :, :n_places]
        rows = tables.reshape(n_families, -1, n_seeds)
        of_rows = np.tile(by_place, n_arms * n_controls)
        claims = simulated_claims(rows, of_rows, FIRST_SHARE, N_PATTERNS, questions, asked)
        own = claims[:, : n_controls * n_places].reshape(n_families, n_controls, n_places)
        n_helps += own.all(1).sum(0)
    return n_helps / N_SIMULATIONS


def fewest_seeds(chances: Callable[[int], Floats], place: int, power: float) -> int | None:
    """Return the smallest number of seeds with this power; None if more than MOST_SEEDS.

    Args:
        chances: Function from the number of seeds to the power at each size.
        place: Index of the size.
        power: The required power.
    """
    low, high = seeds_needed(FIRST_SHARE), MOST_SEEDS
    if chances(high)[place] < power:
        return None
    while low < high:
        middle = (low + high) // 2
        if chances(middle)[place] >= power:
            high = middle
        else:
            low = middle + 1
    return low


def _plan_arm(
    arm: Arm, record: ComparisonRecord, scores: Scores, gain: float, power: float
) -> list[SizePlan]:
    rivals = [rival.name for rival in controls(arm, record.arms)]
    sizes = [size for size in scores.sizes if scores.runs[arm.name, size].is_planned]
    n_seeds = len(scores.seeds)
    spreads = _spreads([arm.name, *rivals], sizes, scores)
    noise = [spread.noise for spread in spreads]
    low, high = zip(*(spread.range() for spread in spreads), strict=True)
    rule = rule_of(record, n_seeds)
    correlations = [rule.correlation(size) for size in sizes]
    names = [arm.name, *(a.name for a in record.arms if is_candidate(a) and a != arm)]
    places = [*sizes, MEAN]
    order = [(names.index(name), places.index(n)) for name, n in rule.order if n in places]

    def chances(noise: Sequence[float]) -> Callable[[int], Floats]:
        chance = partial(chance_to_help, gain, noise, len(rivals))
        family = {"correlations": correlations, "n_other_arms": len(names) - 1, "order": order}
        return cache(partial(chance, **family))

    expected, best, worst = chances(noise), chances(low), chances(high)
    if (arm.name, MEAN) in rule.order:
        of_mean = math.hypot(*noise) / len(sizes)
        spreads.append(replace(spreads[-1], size=MEAN, noise=of_mean))
    by_place = [*correlations, max(correlations)]
    rows = []
    for i, (size, spread) in enumerate(zip(places, spreads, strict=False)):
        single = partial(chance_to_help, gain, [spread.noise], len(rivals))
        alone = cache(partial(single, correlations=by_place[i : i + 1]))
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


def _seconds(known: Mapping[Key, float], arm: str, size: int) -> float:
    """Return the mean time of a run; without finished runs, estimate it from the nearest size."""
    times = {n: seconds for (name, n), seconds in known.items() if name == arm}
    if not times:
        return 0.0
    nearest = _nearest(times, size)
    return times[nearest] * max(1.0, size / nearest)


def _most(seeds: Sequence[int | None]) -> int | None:
    return None if None in seeds else max(n for n in seeds if n is not None)
