"""What is x* worth, in labels? A surface of scores over labels and x*, and the best mix to buy.

    score(n, m) = limit - scale * e^(-power)
    e = n * (1 + rate * (m / n)^share * (n / 100)^-fade)

n rows have a label, m of them x*; e is the number of labels without x* that reach the same score.
So x* is worth `e - n` labels. With share = 1 every x* is worth the same; below 1 the first ones are
worth more than the last. With fade = 0 the label-saving factor depends on the fraction of rows with
x*, not on n; above 0, x* is worth less where there are more labels.

The six parameters are fitted to the mean score of each (n, m) by weighted least squares. Intervals
come from resampling seeds, widened by what the surface misses. A surface that does not fit gives no
answers, and nothing is predicted beyond twice the largest n that was measured.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lupi.errors import LupiError
from lupi.records import ComparisonRecord
from lupi.verdict.scores import Scores, read_scores
from lupi.verdict.units import is_share

Floats = NDArray[np.float64]
N_RESAMPLES = 200
CONFIDENCE = 0.95
MISFIT_LEVEL = 0.01
"""The surface is refused if the points would deviate this much with a lower probability."""
REACH = 2.0
"""Predictions go to this multiple of the largest measured n."""
N_PARAMETERS = 6
LEAST_SEEDS = 3


class Estimate(NamedTuple):
    """A number with its 95 % interval."""

    value: float
    low: float
    high: float


class Point(NamedTuple):
    """The measured scores at one number of labels and of x*."""

    n: int
    m: int
    scores: Mapping[int, float]
    """By seed."""


class Mix(NamedTuple):
    """What to buy for a budget."""

    n: int
    """Rows to label."""
    m: int
    """Rows of them to annotate with x*."""
    cost: float
    score: Estimate
    labels_only_n: int
    """Rows that the same budget labels without x*."""
    labels_only: Estimate
    gain: Estimate
    """Score of the mix minus that of labels alone, with higher as better."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain types."""
        return {
            key: value._asdict() if isinstance(value, Estimate) else value
            for key, value in self._asdict().items()
        }


@dataclass(frozen=True)
class Surface:
    """A fitted surface of scores over n labels and m x*."""

    points: tuple[Point, ...]
    metric: str
    higher_is_better: bool
    arm: str
    """Family of arms with x*."""
    plain: str
    """Arm without x*."""
    parameters: Floats
    """limit, log scale, power, rate, share, fade."""
    resampled: Floats = field(repr=False)
    """(N_RESAMPLES, 6): the parameters fitted to resampled seeds."""
    misfit: float
    """Standard deviation of the true scores around the surface, as far as noise does not explain
    the deviations."""
    p_fit: float
    """Probability of larger deviations if the surface is right."""
    n_seeds: int

    @property
    def fits(self) -> bool:
        """Whether the points are compatible with the surface."""
        return self.p_fit >= MISFIT_LEVEL

    @property
    def helps(self) -> bool:
        """Whether x* for all rows raises the expected score, on average over the sizes."""
        sizes = np.array(sorted({point.n for point in self.points if point.m}))[:, None]

        def gain(t: Floats) -> Floats:
            result: Floats = (self._score(t, sizes, sizes) - self._score(t, sizes, 0)).mean(0)
            return result

        value, samples = float(gain(self.parameters[None])[0]), gain(self.resampled)
        return self._interval(value, samples, self.misfit)[0] > 0

    @cached_property
    def largest_n(self) -> int:
        """Largest measured number of labels."""
        return max(point.n for point in self.points)

    @cached_property
    def smallest_n(self) -> int:
        """Smallest measured number of labels."""
        return min(point.n for point in self.points)

    def score(self, n: float, m: float = 0) -> Estimate:
        """Return the expected score with n labels, m of them with x*."""
        self._check(n, m)
        value, samples = (self._score(t, n, m) for t in (self.parameters[None], self.resampled))
        low, high = self._interval(float(value[0]), samples, self.misfit)
        sign = 1.0 if self.higher_is_better else -1.0
        ends = sorted((sign * low, sign * high))
        return Estimate(sign * float(value[0]), *ends)

    def worth(self, n: float, start: float = 0, stop: float | None = None) -> Estimate:
        """Return how many labels one x* is worth, on average over the x* `start` to `stop` of n.

        By default over all: every labelled row has x*.
        """
        stop = n if stop is None else stop
        if not 0 <= start < stop <= n:
            raise LupiError(
                f"worth: got x* {start} to {stop} of {n} rows; expected 0 <= start < stop <= n"
            )

        def per_xstar(t: Floats) -> Floats:
            extra = [_effective(t, n, m) for m in (start, stop)]
            result: Floats = (extra[1] - extra[0]) / (stop - start)
            return result

        # on a logarithmic scale, as resampled worths are skewed
        value, samples = (np.log1p(per_xstar(t)) for t in (self.parameters[None], self.resampled))
        low, high = self._interval(float(value[0]), samples, 0.0)
        return Estimate(*(float(np.expm1(v)) for v in (value[0], max(low, 0.0), high)))

    def best_mix(self, budget: float, label_cost: float = 1.0, xstar_cost: float = 1.0) -> Mix:
        """Return the numbers of labels and x* that reach the best expected score for a budget.

        Args:
            budget: Money to spend, in the unit of the costs.
            label_cost: Cost of the label of one row.
            xstar_cost: Cost of the x* of one row, on top of its label.
        """
        for name, cost in (
            ("label_cost", label_cost),
            ("xstar_cost", xstar_cost),
            ("budget", budget),
        ):
            if not (np.isfinite(cost) and cost > 0):
                raise LupiError(f"{name}: got {cost:g}; expected a number above 0")
        n_most = int(budget / label_cost + 1e-9)
        reach = int(REACH * self.largest_n)
        if n_most < 1 or n_most > reach:
            raise LupiError(
                f"budget: {budget:g} buys {n_most:,} labels at {label_cost:g} each; the surface "
                f"was measured from {self.smallest_n:,} to {self.largest_n:,} rows and answers up "
                f"to {reach:,}: change the budget, or run larger sizes"
            )
        n = np.arange(max(1, int(budget / (label_cost + xstar_cost))), n_most + 1)
        m = np.minimum(np.floor((budget - label_cost * n) / xstar_cost + 1e-9), n)
        best = int(np.argmax(self._score(self.parameters[None], n[:, None], m[:, None])))
        n_best, m_best = int(n[best]), int(m[best])
        value, samples = (
            self._score(t, n_best, m_best) - self._score(t, n_most, 0)
            for t in (self.parameters[None], self.resampled)
        )
        return Mix(
            n_best,
            m_best,
            label_cost * n_best + xstar_cost * m_best,
            self.score(n_best, m_best),
            n_most,
            self.score(n_most),
            Estimate(float(value[0]), *self._interval(float(value[0]), samples, self.misfit))
            if m_best
            else Estimate(0.0, 0.0, 0.0),
        )

    def _check(self, n: float, m: float) -> None:
        reach = REACH * self.largest_n
        if not (1 <= n <= reach and 0 <= m <= n):
            raise LupiError(
                f"score: got n = {n:g} labels, m = {m:g} of them with x*; expected 1 <= n <= "
                f"{reach:g} (twice the largest measured size) and 0 <= m <= n"
            )

    @staticmethod
    def _score(parameters: Floats, n: object, m: object) -> Floats:
        limit, log_scale, power = (parameters[..., i] for i in range(3))
        effective = _effective(parameters, n, m)
        result: Floats = limit - np.exp(log_scale) * (effective / 100) ** -power
        return result

    def _interval(self, value: float, samples: Floats, extra: float) -> tuple[float, float]:
        """Return the ends of Student's interval around a value, from resampled seeds."""
        from scipy.special import stdtrit

        spread = float(np.std(samples)) * np.sqrt(self.n_seeds / (self.n_seeds - 1))
        half = float(stdtrit(self.n_seeds - 1, (1 + CONFIDENCE) / 2)) * np.hypot(spread, extra)
        return value - float(half), value + float(half)


def _effective(parameters: Floats, n: object, m: object) -> Floats:
    """Return the number of labels without x* that reach the same score."""
    labels, annotated = np.asarray(n, np.float64), np.asarray(m, np.float64)
    rate, share, fade = (parameters[..., i] for i in (3, 4, 5))
    result: Floats = labels * (1 + rate * (annotated / labels) ** share * (labels / 100) ** -fade)
    return result


def fit_surface(
    points: Sequence[Point],
    metric: str,
    higher_is_better: bool = True,
    arm: str = "x*",
    plain: str = "plain",
) -> Surface:
    """Fit the surface to measured points.

    Args:
        points: Scores by seed at each (n, m); m = 0 is the arm without x*.
        metric: Name of the metric.
        higher_is_better: Whether a higher score is better.
        arm: Name of the arms with x*.
        plain: Name of the arm without x*.
    """
    from scipy.special import chdtrc

    n = np.array([p.n for p in points], np.float64)
    m = np.array([p.m for p in points], np.float64)
    seeds = sorted({seed for p in points for seed in p.scores})
    sign = 1.0 if higher_is_better else -1.0
    table = np.array([[sign * p.scores.get(s, np.nan) for p in points] for s in seeds])
    _check_points(points, len(seeds))
    shares = {round(p.m / p.n, 6) for p in points if p.m}
    bent = len(shares) > 1  # one fraction can't tell the shape in m
    weight = _precision(table)
    top = 1.0 if is_share(metric) and higher_is_better else np.inf

    def fit(means: Floats, start: Floats | None) -> Floats:
        return _least_squares(n, m, means, weight, top, bent, start)

    parameters = fit(np.nanmean(table, 0), None)
    random = np.random.default_rng(0)
    resampled = []
    for _ in range(N_RESAMPLES):
        drawn = table[random.integers(len(seeds), size=len(seeds))]
        counts = np.isfinite(drawn).sum(0)
        if counts.min() > 0:
            resampled.append(fit(np.nanmean(drawn, 0), parameters))
    deviations = np.nanmean(table, 0) - Surface._score(parameters, n, m)
    n_free = max(len(points) - N_PARAMETERS + (not bent), 1)
    excess = float(np.mean(deviations**2) - n_free / len(points) * np.mean(1 / weight**2))
    return Surface(
        tuple(points),
        metric,
        higher_is_better,
        arm,
        plain,
        parameters,
        np.array(resampled),
        np.sqrt(max(excess, 0.0)),
        float(chdtrc(n_free, float(((deviations * weight) ** 2).sum()))),
        len(seeds),
    )


def _least_squares(
    n: Floats,
    m: Floats,
    means: Floats,
    weight: Floats,
    top: float,
    bent: bool,
    start: Floats | None,
) -> Floats:
    """Return the parameters with the least weighted squares, from one start or from several."""
    from scipy.optimize import least_squares

    best, spread = float(means.max()), float(np.ptp(means)) or 1e-3
    low = np.array(
        [best - 0.5 * spread, np.log(spread) - 7, 0.05, 0.0, 0.1 if bent else 1 - 1e-9, 0.0]
    )
    high = np.array([min(top, best + 20 * spread), np.log(spread) + 5, 2.0, 50.0, 1.0, 2.0])
    high[0] = max(high[0], low[0] + 1e-6)
    starts = (
        [start]
        if start is not None
        else [
            np.array([best + gap * spread, np.log(spread), power, rate, 0.9, fade])
            for gap in (0.05, 0.5)
            for power in (0.3, 0.8)
            for rate in (0.1, 2.0)
            for fade in (0.1, 1.0)
        ]
    )

    def deviations(t: Floats) -> Floats:
        result: Floats = (Surface._score(t, n, m) - means) * weight
        return result

    found = [
        least_squares(deviations, np.clip(s, low + 1e-12, high - 1e-12), bounds=(low, high))
        for s in starts
    ]
    result: Floats = min(found, key=lambda f: float(f.cost)).x
    return result


def _precision(table: Floats) -> Floats:
    """Return 1 / standard error of the mean of each point, with one spread for all.

    The spread is that around the mean of each seed: a seed's easy or hard rows shift all points.
    """
    counts = np.isfinite(table).sum(0)
    within = table - np.nanmean(table, 1, keepdims=True)
    spread = np.sqrt(np.nanmean(np.nanvar(within, 0) * counts / np.maximum(counts - 1, 1)))
    result: Floats = np.sqrt(counts) / max(float(spread), 1e-9)
    return result


def _check_points(points: Sequence[Point], n_seeds: int) -> None:
    what, todo = "", ""
    if n_seeds < LEAST_SEEDS:
        what, todo = f"{n_seeds} seeds", f"{LEAST_SEEDS} or more: add seeds"
    elif len({p.n for p in points if not p.m}) < 2:
        what, todo = "one size without x*", "two or more: add `sizes`"
    elif not any(p.m for p in points):
        what, todo = "no point with x*", "arms with `xstar_fracs`"
    elif len(points) < N_PARAMETERS:
        what, todo = f"{len(points)} points", f"{N_PARAMETERS} or more: add sizes or fractions"
    if what:
        raise LupiError(f"the worth of x* can't be fitted: got {what}; expected {todo}")


def find_surface(record: ComparisonRecord, arm: str | None = None) -> Surface:
    """Fit the surface of a comparison whose arms differ in the fraction of rows with x*.

    The arm without x* is the one with the best mean score over the sizes that all of them have.

    Args:
        record: A comparison with `xstar_fracs`.
        arm: Name of the arm in the settings; only needed if several have `xstar_fracs`.
    """
    scores = read_scores(record)
    families = sorted({a.family for a in record.arms if a.family and a.control == "real"})
    if not families:
        raise LupiError(
            "no arm of this comparison has x* for several fractions of the rows: run it with "
            "`lupi compare ... --xstar-fracs 0.1,0.25,0.5,1`"
        )
    if arm is None and len(families) > 1:
        raise LupiError(
            f"several arms have x* for fractions of the rows ({', '.join(families)}): "
            "name one of them"
        )
    family = families[0] if arm is None else arm
    if family not in families:
        raise LupiError(f"no arm {family!r} with several fractions; known: {', '.join(families)}")
    plain = _best_plain(record, scores)
    with_xstar = {
        a.name: a.xstar_frac for a in record.arms if a.family == family and a.control == "real"
    }
    points = [
        Point(size, round(frac * size), runs.scores)
        for (name, size), runs in scores.runs.items()
        for frac in [with_xstar.get(name, 0.0)]
        if (name == plain or frac > 0) and runs.scores
    ]
    return fit_surface(points, record.metric.name, record.metric.higher_is_better, family, plain)


def _best_plain(record: ComparisonRecord, scores: Scores) -> str:
    """Return the arm without x* that has the best mean over the sizes of all such arms."""
    names = [a.name for a in record.arms if not a.uses_xstar and not a.sees_xstar_at_test]
    names = [name for name in names if any(scores.runs[name, s].scores for s in scores.sizes)]
    if not names:
        raise LupiError("the comparison has no finished arm without x*: add a no-xstar arm")
    common = [s for s in scores.sizes if all(scores.runs[name, s].scores for name in names)]

    def mean(name: str) -> float:
        cells = [list(scores.runs[name, size].scores.values()) for size in common]
        return scores.sign * float(np.mean([np.mean(cell) for cell in cells]))

    return max(names, key=mean) if common else names[0]
