"""Label-saving factor: how many times more labels the reference needs for the same score.

    factor(n) = n_reference(s) / n,    s = the arm's mean score with n labels

n_reference inverts the reference's learning curve: the means per size, made monotone by isotonic
regression and joined by straight lines in log n; on a flat part the smallest n counts. Nothing is
extrapolated: a score the curve doesn't reach is "beyond range", one below its start "below range".
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lupi.evidence.answer import LabelSaving
from lupi.evidence.paired import ROUNDING, SEED

N_RESAMPLES = 2000

Floats = NDArray[np.float64]


def label_saving(
    sizes: Sequence[int], reference: ArrayLike, arm: ArrayLike, size: int
) -> LabelSaving:
    """Measure how many labels an arm saves at one size. Higher scores are better.

    The interval resamples seeds, the same ones for both arms. A resample beyond range counts as
    infinitely many labels and one below range as none; an end of the interval that falls on those
    is given as far as it was measured: an upper end as None, a lower end as the largest factor
    that could have been measured; a lower end of 0 means "below the smallest size".

    Args:
        sizes: the sizes of the reference's curve, increasing.
        reference: its scores, (seed, size).
        arm: the arm's scores at `size`, (seed,).
        size: the arm's training-set size.
    """
    curve, scores = np.asarray(reference, np.float64), np.asarray(arm, np.float64)
    n_seeds = len(scores)
    if curve.shape != (n_seeds, len(sizes)) or not curve.size:
        raise ValueError(
            f"expected reference scores of shape ({n_seeds}, {len(sizes)}), got {curve.shape}"
        )
    if not (np.isfinite(curve).all() and np.isfinite(scores).all()):
        raise ValueError("scores must be finite; leave out the seeds that have none")
    once = np.full((1, n_seeds), 1 / n_seeds)  # (1, seed)
    factor = float(_labels_needed(sizes, once @ curve, once @ scores)[0]) / size
    interval = _interval(sizes, curve, scores, size) if n_seeds > 1 else None
    if np.isinf(factor):
        return LabelSaving("beyond range", None, interval)
    if factor == 0:
        return LabelSaving("below range", None, interval)
    return LabelSaving("measured", factor, interval)


def _interval(
    sizes: Sequence[int], curve: Floats, scores: Floats, size: int
) -> tuple[float, float | None]:
    n_seeds = len(scores)
    rng = np.random.default_rng(SEED)
    draws = rng.multinomial(n_seeds, np.full(n_seeds, 1 / n_seeds), size=N_RESAMPLES)
    weights = draws / n_seeds  # (resample, seed)
    factors = np.sort(_labels_needed(sizes, weights @ curve, weights @ scores)) / size
    tail = N_RESAMPLES // 40  # 2.5 %
    low, high = float(factors[tail]), float(factors[-tail - 1])
    low = min(low, sizes[-1] / size)
    high = max(high, sizes[0] / size)
    return low, None if np.isinf(high) else high


def _labels_needed(sizes: Sequence[int], means: Floats, scores: Floats) -> Floats:
    """Return the n at which each curve reaches its score; inf beyond range, 0 below.

    Args:
        sizes: K sizes, increasing.
        means: one curve per row, (resample, K).
        scores: (resample,).
    """
    curve = isotonic(means)
    log_n = np.log(sizes)
    rows = np.arange(len(curve))
    slack = ROUNDING * np.maximum(np.abs(curve), np.abs(scores)[:, None])
    reached = curve >= scores[:, None] - slack  # a tie up to rounding is reached
    right = reached.argmax(axis=1)
    left = np.maximum(right - 1, 0)
    rise = curve[rows, right] - curve[rows, left]
    part = (scores - curve[rows, left]) / np.where(rise > 0, rise, 1.0)
    needed = np.exp(log_n[left] + np.clip(part, 0.0, 1.0) * (log_n[right] - log_n[left]))
    below = scores < curve[:, 0] - slack[:, 0]
    return np.where(below, 0.0, np.where(reached.any(axis=1), needed, np.inf))


def isotonic(values: Floats) -> Floats:
    """Return the nearest increasing curve of each row, by the max-min formula.

    fit[k] = max over i <= k of min over j >= k of mean(values[i..j]): what pooling adjacent
    violators computes (Barlow et al. 1972), in a form that takes all rows at once.
    """
    n_points = values.shape[1]
    fit = np.full_like(values, -np.inf)
    for i in range(n_points):
        running = np.cumsum(values[:, i:], axis=1) / np.arange(1, n_points - i + 1)
        lowest = np.minimum.accumulate(running[:, ::-1], axis=1)[:, ::-1]  # over j >= k
        fit[:, i:] = np.maximum(fit[:, i:], lowest)
    return fit
