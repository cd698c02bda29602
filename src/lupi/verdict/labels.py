"""Label-saving factor: the factor by which another arm needs more labels for the same score.

    factor(n) = n_other(s) / n,    s = the arm's mean score with n labels

n_other inverts the other's learning curve: the means per size, made monotone by isotonic
regression and joined by straight lines in log n; on a flat part the smallest n counts. Nothing is
extrapolated: a score the curve doesn't reach is "beyond range", one below its start "below range".

The interval comes from the paired test: it contains all n' at which the arm's scores with n labels
and the other's with n', interpolated seed by seed, do not differ. So it excludes a factor of 1
exactly if the two arms differ at the same n.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from lupi.verdict.answer import LabelSaving
from lupi.verdict.statistics.paired import ROUNDING, Floats, p_above_zero, smallest_p
from lupi.verdict.verdict import ALPHA

POINTS = 16
"""Points between two sizes at which arms are compared for the interval."""
N_SETS = 2**12
"""Maximum number of sets of seeds; if there are more, this many are drawn at random."""


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
    if smallest_p(n_seeds) <= share * ALPHA / 2:
        low, high = _interval(sizes, table, scores, share * ALPHA / 2, correlation)
        interval = low / size, None if high is None else high / size
    if np.isinf(factor):
        return LabelSaving(other, "beyond range", None, interval)
    if factor == 0:
        return LabelSaving(other, "below range", None, interval)
    return LabelSaving(other, "measured", factor, interval)


def _interval(
    sizes: Sequence[int], table: Floats, scores: Floats, alpha: float, correlation: float
) -> tuple[float, float | None]:
    """Return the smallest and the largest n' at which the arms may be equal."""
    log_n = _points(sizes)
    curves = np.array([np.interp(log_n, np.log(sizes), row) for row in table])  # (seed, point)
    differences = (scores[:, None] - curves).T  # (point, seed)
    slack = ROUNDING * np.abs(table).max()
    differences[np.abs(differences) <= slack] = 0.0
    n = np.exp(log_n)
    n[::POINTS] = sizes  # without rounding
    n_better = _n_above_zero(differences, alpha, correlation)  # from the smallest n' on
    n_worse = _n_above_zero(-differences[::-1], alpha, correlation)  # from the largest n' on
    low = float(n[n_better - 1]) if n_better else 0.0
    high = float(n[-n_worse]) if n_worse else None
    return low, high


def _n_above_zero(rows: Floats, alpha: float, correlation: float) -> int:
    """Return the number of leading rows of differences that are significantly above zero."""
    for start in range(0, len(rows), POINTS):
        p_values = p_above_zero(rows[start : start + POINTS], correlation, N_SETS)
        if (p_values > alpha).any():
            return start + int((p_values > alpha).argmax())
    return len(rows)


def _points(sizes: Sequence[int]) -> Floats:
    """Return points in log n between the sizes, including the sizes."""
    ends = np.log(sizes)
    parts = [np.linspace(a, b, POINTS, endpoint=False) for a, b in pairwise(ends)]
    return np.concatenate([*parts, ends[-1:]])


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
    part = min(max((score - float(curve[left])) / rise, 0.0), 1.0) if rise > 0 else 0.0
    return float(np.exp(np.log(sizes[left]) + part * np.log(sizes[right] / sizes[left])))


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
