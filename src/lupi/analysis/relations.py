"""Rank correlation with an interval, and the difference of two means with one."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

NORMAL = 1.959964
"""95 % of a normal distribution are within so many standard deviations."""
FEWEST = 10
"""Rows, below which an interval would pretend to know."""
SMALLEST_SPREAD = 1e-6
"""Relative to its size, a quantity that varies less does not vary."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its 95 % interval."""

    value: float
    interval: tuple[float, float]

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.interval[0] > 0 or self.interval[1] < 0


def rank_correlation(a: ArrayLike, b: ArrayLike) -> Estimate | None:
    """Return Spearman's correlation, its interval after Bonett and Wright (2000).

    None where either side does not vary, or rows are too few. Rows that are not finite are left
    out.
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    finite = np.isfinite(first) & np.isfinite(second)
    first, second = first[finite], second[finite]
    n = first.size
    if n < FEWEST or not (_varies(first) and _varies(second)):
        return None
    r = float(stats.spearmanr(first, second).statistic)
    centre = math.atanh(max(-0.999999, min(0.999999, r)))
    half = NORMAL * math.sqrt((1 + r**2 / 2) / (n - 3))
    return Estimate(r, (math.tanh(centre - half), math.tanh(centre + half)))


def mean_difference(a: ArrayLike, b: ArrayLike) -> Estimate | None:
    """Return mean(a) - mean(b) with Welch's interval.

    None where nothing varies, or rows are too few.
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if min(first.size, second.size) < FEWEST or not _varies(np.concatenate([first, second])):
        return None
    interval = stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    return Estimate(
        float(first.mean() - second.mean()), (float(interval.low), float(interval.high))
    )


def _varies(values: NDArray[np.float64]) -> bool:
    return bool(np.ptp(values) > SMALLEST_SPREAD * np.abs(values).max(initial=0.0))
