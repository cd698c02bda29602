"""Label-saving factor: the factor by which another arm needs more labels for the same score.

    factor(n) = n_other(s) / n,    s = the arm's mean score with n labels

n_other inverts the other's learning curve: the means per size, made monotone by isotonic
regression. Between two sizes the curve follows a power law, a - b n**-c, because learning curves
bend: straight lines in log n put the factor too high where sizes are far apart. The exponent c is
fitted to three sizes or more. On a flat part the smallest n counts. Nothing is extrapolated: a
score the curve doesn't reach is "beyond range", one below its start "below range".

The interval comes from the paired test: it contains all n' at which the arm's scores with n labels
and the other's with n', interpolated seed by seed, do not differ. So it excludes a factor of 1
exactly if the two arms differ at the same n.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from lupi.verdict.results import Answer, LabelSaving
from lupi.verdict.roles import Key
from lupi.verdict.scores import Scores
from lupi.verdict.statistics import ALPHA, ROUNDING, Floats, p_above_zero, seeds_needed

WIDE_SPACING = 3.0
"""Ratio of neighbouring sizes above which interpolation is doubtful."""
EXPONENTS = np.linspace(0.01, 1.0, 34)
EXPONENT = 0.5
"""The exponent for two sizes, which do not show how a curve bends."""
POINTS = 16
"""Points between two sizes at which arms are compared for the interval."""
N_PATTERNS = 2**11
"""Largest number of sign patterns for the interval."""


def label_saving(
    other: str,
    sizes: Sequence[int],
    curve: ArrayLike,
    arm: ArrayLike,
    size: int,
    share: float = 1.0,
    correlation: float = 0.0,
) -> LabelSaving:
    """Return the label saving of an arm at one size. Higher scores are better.

    An end of the interval outside the measured sizes is given as far as it was measured: an upper
    end as None, a lower end as the largest factor that could have been measured; a lower end of 0
    means "below the smallest size".

    Args:
        other: Name of the other arm.
        sizes: The sizes of its learning curve, increasing.
        curve: Its scores, (seed, size).
        arm: The arm's scores at `size`, (seed,).
        size: The arm's training-set size.
        share: Share of the allowed error that the interval may spend.
        correlation: Correlation between two seeds due to shared rows.
    """
    table, scores = np.asarray(curve, np.float64), np.asarray(arm, np.float64)
    n_seeds = len(scores)
    if table.shape != (n_seeds, len(sizes)) or not table.size:
        raise ValueError(f"expected a curve of shape ({n_seeds}, {len(sizes)}), got {table.shape}")
    if not (np.isfinite(table).all() and np.isfinite(scores).all()):
        raise ValueError("scores must be finite; leave out the seeds that have none")
    factor = _labels_needed(sizes, table.mean(0), float(scores.mean())) / size
    interval = None
    if n_seeds >= seeds_needed(share):
        low, high = _interval(sizes, table, scores, share * ALPHA / 2, correlation)
        interval = low / size, None if high is None else high / size
    if np.isinf(factor):
        return LabelSaving(other, "beyond range", None, interval)
    if factor == 0:
        return LabelSaving(other, "below range", None, interval)
    return LabelSaving(other, "measured", factor, interval)


def saving_over(
    other: str, key: Key, answer: Answer, scores: Scores, share: float, correlation: float
) -> LabelSaving:
    """Compare an arm at one size with the learning curve of another, on the seeds with both.

    Args:
        other: Name of the other arm.
        key: The arm and its size.
        answer: What was found about the arm at that size.
        scores: Scores of all arms.
        share: Share of the allowed error that the interval may spend.
        correlation: Correlation between two seeds due to shared rows.
    """
    arm, size = key
    sizes = [n for n in scores.sizes if scores.runs[other, n].scores]
    seeds = scores.common_seeds(key, *((other, n) for n in sizes))
    if len(sizes) < 2 or not seeds:  # a curve needs two sizes
        return LabelSaving(other, "unknown", None, None)
    curve = np.stack([scores.gains(other, n, seeds) for n in sizes], axis=1)  # (seed, size)
    gains = scores.gains(arm, size, seeds)
    saving = label_saving(other, sizes, curve, gains, size, share, correlation)
    found = answer.against(other)
    return saving if found is None else _agreeing(saving, found.interval)


def _agreeing(saving: LabelSaving, interval: tuple[float | None, float | None]) -> LabelSaving:
    """Let the factor exclude 1 only if the difference at the same size excludes 0."""
    if saving.interval is None:
        return saving
    (low, high), (worst, best) = saving.interval, interval
    if worst is None or worst <= 0:
        low = min(low, 1.0)
    if high is not None and (best is None or best >= 0):
        high = max(high, 1.0)
    return replace(saving, interval=(low, high))


def _interval(
    sizes: Sequence[int], table: Floats, scores: Floats, alpha: float, correlation: float
) -> tuple[float, float | None]:
    """Return the smallest and the largest n' at which the arms may be equal."""
    ends = _coordinate(sizes, table.mean(0))
    differences = scores[:, None] - table  # (seed, size)
    low = _first_equal(sizes, ends, differences, alpha, correlation)
    high = _first_equal(sizes[::-1], ends[::-1], -differences[:, ::-1], alpha, correlation)
    return (0.0 if low is None else low), high


def _first_equal(
    sizes: Sequence[int], ends: Floats, differences: Floats, alpha: float, correlation: float
) -> float | None:
    """Return the last n', going along the sizes, at which differences are still above zero.

    None if they are not above zero at the first size.
    """
    slack = ROUNDING * np.abs(differences).max(initial=0.0)

    def n_above(rows: Floats) -> int:
        rows = np.where(np.abs(rows) <= slack, 0.0, rows)
        is_equal = p_above_zero(rows, correlation, N_PATTERNS) > alpha
        return int(is_equal.argmax()) if is_equal.any() else len(rows)

    place = n_above(differences.T)
    if place in (0, len(sizes)):
        return float(sizes[-1]) if place else None
    shares = np.linspace(0, 1, POINTS, endpoint=False)
    left, right = differences[:, place - 1], differences[:, place]
    rows = left + shares[:, None] * (right - left)  # (point, seed)
    share = shares[max(n_above(rows), 1) - 1]
    return _labels_at(sizes[place - 1], sizes[place], ends[place - 1 : place + 1], float(share))


def _labels_at(left: int, right: int, ends: Floats, share: float) -> float:
    """Return the n at this share of the way between two sizes, in the coordinate of the curve."""
    if share in (0, 1):
        return float(right if share else left)
    # The coordinate is -n**-c, up to scale: c from its values at the two sizes.
    exponent = float(np.log(ends[0] / ends[1]) / np.log(right / left))
    point = ends[0] + share * (ends[1] - ends[0])
    return float(left * (ends[0] / point) ** (1 / exponent))


def _coordinate(sizes: Sequence[int], means: Floats) -> Floats:
    """Return -n**-c of each size, with the exponent that makes the mean curve straightest."""
    n = np.asarray(sizes, np.float64) / sizes[0]
    if len(sizes) < 3:
        return -(n**-EXPONENT)
    points = -(n ** -EXPONENTS[:, None])  # (exponent, size)
    centred = points - points.mean(1, keepdims=True)
    curve = isotonic(means)
    explained = (centred @ curve) ** 2 / (centred**2).sum(1)  # largest where it is straightest
    straightest: Floats = points[int(explained.argmax())]
    return straightest


def _labels_needed(sizes: Sequence[int], means: Floats, score: float) -> float:
    """Return the n at which the curve of the means reaches the score; inf beyond range, 0 below."""
    curve = isotonic(means)
    slack = ROUNDING * max(abs(score), float(np.abs(curve).max()))
    if score < curve[0] - slack:
        return 0.0
    reached = np.flatnonzero(curve >= score - slack)  # a tie up to rounding is reached
    if not reached.size:
        return float("inf")
    right = int(reached[0])
    left = max(right - 1, 0)
    rise = float(curve[right] - curve[left])
    share = min(max((score - float(curve[left])) / rise, 0.0), 1.0) if rise > 0 else 0.0
    ends = _coordinate(sizes, means)
    return _labels_at(sizes[left], sizes[right], ends[[left, right]], share)


def isotonic(values: Floats) -> Floats:
    """Return the nearest increasing curve, by the max-min formula.

    fit[k] = max over i <= k of min over j >= k of mean(values[i..j]): what pooling adjacent
    violators computes (Barlow et al. 1972).
    """
    n_points = len(values)
    fit = np.full_like(values, -np.inf)
    for i in range(n_points):
        running = np.cumsum(values[i:]) / np.arange(1, n_points - i + 1)
        lowest = np.minimum.accumulate(running[::-1])[::-1]  # over j >= k
        fit[i:] = np.maximum(fit[i:], lowest)
    return fit
