"""Paired differences over seeds: an exact test and its interval.

Arms that share a seed share training rows, initial weights and batch order, so they are compared
seed by seed. If two arms are equal, a difference is as likely positive as negative, and all 2**J
ways to flip the signs of J differences are equally likely (Fisher 1935). Flipping the signs of a
set A of seeds gives a mean at least as large exactly if the mean over A is zero or less, so

    p(the arm is better by more than x) = share of all sets A, with the empty one, whose mean <= x

and the k-th smallest of these means is a lower confidence bound of level 1 - k / 2**J: exact for
symmetric differences, whatever their distribution (typical values, Hartigan 1969). Above 16 seeds,
2**16 - 1 random sets are used.

Seeds whose training rows overlap are correlated. A correlation r between any two makes the mean
of J differences vary sqrt(1 + J r / (1 - r)) times as much as their spread tells (Nadeau and
Bengio 2003); the distance between mean and bound is multiplied by that.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

SEED = 0
N_SETS = 2**16
"""Maximum number of sets of seeds; if there are more, this many are drawn at random."""
ROWS_AT_A_TIME = 64
"""Number of sets processed at once, limited by memory."""
ROUNDING = 1e-12
"""Relative differences below this are floating-point rounding."""

Floats = NDArray[np.float64]


def paired_differences(arm: ArrayLike, other: ArrayLike) -> Floats:
    """Return arm minus other for scores in the same order of seeds; rounding errors become 0."""
    a, b = _scores(arm), _scores(other)
    if a.size != b.size:
        raise ValueError(f"paired arms need the same seeds: got {a.size} and {b.size} scores")
    return np.where(np.isclose(a, b, rtol=ROUNDING, atol=0.0), 0.0, a - b)


class PairedTest:
    """Exact test of whether the mean difference is above or below a value, at one look."""

    def __init__(self, differences: ArrayLike, correlation: float = 0.0) -> None:
        """Take one difference per seed, and the correlation between seeds due to shared rows."""
        values = _scores(differences)
        self.mean = float(values.mean()) if values.size else 0.0
        largest = float(np.abs(values).max(initial=0.0))
        usable = values if _has_spread(values, largest) else values[:0]
        self._means = np.sort(_subset_means(usable))
        self._slack = ROUNDING * largest
        self._inflation = math.sqrt(1 + values.size * correlation / (1 - correlation))

    @property
    def smallest_p(self) -> float:
        """The smallest p-value possible with this number of seeds."""
        return 1 / (self._means.size + 1)

    def p_above(self, value: float = 0.0) -> float:
        """Return the p-value of "the difference is no larger than `value`"."""
        n_below = np.searchsorted(self._means, self._moved(value) + self._slack, side="right")
        return float(1 + n_below) / (self._means.size + 1)

    def p_below(self, value: float = 0.0) -> float:
        """Return the p-value of "the difference is no smaller than `value`"."""
        n_below = np.searchsorted(self._means, self._moved(value) - self._slack, side="left")
        return float(1 + self._means.size - n_below) / (self._means.size + 1)

    def low(self, alpha: float) -> float:
        """Return the lower bound of level 1 - alpha; -inf if there are too few seeds for one."""
        k = math.floor(alpha * (self._means.size + 1) * (1 + ROUNDING))
        return self._spread_out(float(self._means[k - 1])) if k else -math.inf

    def high(self, alpha: float) -> float:
        """Return the upper bound of level 1 - alpha; inf if there are too few seeds for one."""
        k = math.floor(alpha * (self._means.size + 1) * (1 + ROUNDING))
        return self._spread_out(float(self._means[-k])) if k else math.inf

    def _spread_out(self, bound: float) -> float:
        return self.mean + self._inflation * (bound - self.mean)

    def _moved(self, value: float) -> float:
        """Return the position of a value on the scale of the subset means."""
        return self.mean + (value - self.mean) / self._inflation


def p_above_zero(rows: Floats, correlation: float = 0.0, n_sets: int = N_SETS) -> Floats:
    """Return `PairedTest(row, correlation).p_above()` of each row, (row, seed) to (row,)."""
    n_seeds = rows.shape[1]
    means = rows.mean(1, keepdims=True)
    moved = rows - means * (1 - 1 / math.sqrt(1 + n_seeds * correlation / (1 - correlation)))
    largest = np.abs(rows).max(1, initial=0.0)
    slack = ROUNDING * largest * n_seeds
    without_spread = (np.ptp(rows, axis=1) <= ROUNDING * largest) & (n_seeds > 1)
    members = _sets(n_seeds, n_sets)
    p_values = np.empty(len(rows))
    for start in range(0, len(rows), ROWS_AT_A_TIME):
        chunk = slice(start, start + ROWS_AT_A_TIME)
        n_below = (moved[chunk] @ members.T <= slack[chunk, None]).sum(1)
        p_values[chunk] = (1 + n_below) / (len(members) + 1)
    return np.where(without_spread, 1.0, p_values)


def smallest_p(n_seeds: int) -> float:
    """Return the smallest possible one-sided p-value: 1 / 2**n."""
    return 1 / min(1 << n_seeds, N_SETS)


def mean_interval(scores: ArrayLike) -> tuple[float, float] | None:
    """Return Student's 95 % interval of a mean; None with fewer than two seeds or no spread."""
    values = _scores(scores)
    if values.size < 2 or np.ptp(values) <= ROUNDING * float(np.abs(values).max()):
        return None
    half = float(
        special.stdtrit(values.size - 1, 0.975) * values.std(ddof=1) / math.sqrt(values.size)
    )
    mean = float(values.mean())
    return mean - half, mean + half


def _has_spread(values: Floats, largest: float) -> bool:
    """Whether the seeds are replicates: identical non-zero differences are not."""
    return values.size < 2 or largest == 0 or bool(np.ptp(values) > ROUNDING * largest)


def _subset_means(values: Floats) -> Floats:
    """Return the mean over each non-empty set of seeds."""
    if not values.size:
        return values
    members = _sets(values.size)
    means: Floats = (members @ values) / members.sum(1)
    return means


@lru_cache(maxsize=4)  # cached, because most arms have the same number of seeds
def _sets(n_seeds: int, n_sets: int = N_SETS) -> Floats:
    """Return the non-empty sets of seeds, or a sample of them, as 0 and 1, (set, seed)."""
    if 1 << n_seeds > n_sets:
        drawn = np.random.default_rng(SEED).integers(2, size=(n_sets - 1, n_seeds))
        drawn[drawn.sum(1) == 0] = 1
        return drawn.astype(np.float64)
    return (np.arange(1, 1 << n_seeds)[:, None] >> np.arange(n_seeds) & 1).astype(np.float64)


def _scores(values: ArrayLike) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise ValueError(f"scores must be one finite number per seed, got {array.tolist()}")
    return array
