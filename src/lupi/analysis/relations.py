"""Rank correlations and differences of means, with intervals."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

NORMAL = 1.959964
"""Quantile of the normal distribution for a two-sided 95 % interval."""
FEWEST = 10
"""Minimum number of rows for an interval."""
SMALLEST_SPREAD = 1e-6
"""A quantity with a smaller relative range counts as constant."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its 95 % interval."""

    value: float
    interval: tuple[float, float]

    @property
    def is_clear(self) -> bool:
        """Whether the interval excludes zero."""
        return self.interval[0] > 0 or self.interval[1] < 0


def rank_correlation(a: ArrayLike, b: ArrayLike) -> Estimate | None:
    """Return Spearman's correlation with an interval after Bonett and Wright (2000).

    Return None if either side does not vary or there are too few rows. Rows that are not finite
    are ignored.
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

    Return None if nothing varies or there are too few rows.
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
