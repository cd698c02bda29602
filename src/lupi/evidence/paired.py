"""Paired statistics over seeds, on plain arrays: differences, intervals, tests.

Arms that share a seed share subset, initialisation and batch order, so they are compared seed by
seed. Interval: BCa bootstrap (Efron 1987). Test: two-sided sign flips (Fisher 1935), exact up to
16 seeds; above, 2**16 seeded random flips with the +1 correction of Phipson and Smyth (2010), so
that p is never 0. Correction over several tests: Holm (1979). The same call gives the same numbers.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

SEED = 0
N_FLIPS = 2**16
"""All 2**n sign flips are tried if they are no more than this, else so many drawn at random."""
ROUNDING = 1e-12
"""Scores closer than this, relative to their size, differ by floating-point rounding only."""


class Paired(NamedTuple):
    """A paired difference over seeds: arm minus other."""

    mean: float
    interval: tuple[float, float] | None
    p_value: float | None


def paired_difference(arm: ArrayLike, other: ArrayLike) -> Paired:
    """Compare two arms whose scores are in the same order of seeds.

    Without spread (all differences equal) a bootstrap can't say how sure the mean is: the interval
    is None, not a point, while the test still holds. With one seed interval and p-value are None.
    """
    a, b = _scores(arm), _scores(other)
    if a.size != b.size or not a.size:
        raise ValueError(
            f"paired arms need the same seeds, at least one: got {a.size} and {b.size} scores"
        )
    differences = np.where(np.isclose(a, b, rtol=ROUNDING, atol=0.0), 0.0, a - b)
    largest = float(np.maximum(np.abs(a), np.abs(b)).max())
    interval = _bca(differences, smallest_spread=ROUNDING * largest)
    p_value = sign_flip_p(differences) if differences.size > 1 else None
    return Paired(float(differences.mean()), interval, p_value)


def mean_interval(scores: ArrayLike) -> tuple[float, float] | None:
    """Return the BCa 95 % interval of a mean; None with fewer than two seeds or without spread."""
    values = _scores(scores)
    return _bca(values, smallest_spread=ROUNDING * float(np.abs(values).max(initial=0.0)))


def sign_flip_p(differences: ArrayLike) -> float:
    """Return the two-sided p-value of "differences are as likely positive as negative"."""
    values = _scores(differences)
    sums = _signs(values.size) @ values  # (flip,)
    # A tie up to the rounding of a sum is as extreme.
    slack = values.size * np.finfo(np.float64).eps * float(np.abs(values).sum())
    n_above = int((sums >= values.sum() - slack).sum())
    n_below = int((sums <= values.sum() + slack).sum())
    is_sampled = 1 << values.size > N_FLIPS
    return min(1.0, 2 * (min(n_above, n_below) + is_sampled) / (len(sums) + is_sampled))


@lru_cache(maxsize=1)  # the arms of a comparison mostly have the same number of seeds
def _signs(n_seeds: int) -> NDArray[np.float64]:
    """Return all 2**n_seeds sign flips, or a sample of them, as +1 and -1, (flip, seed)."""
    if 1 << n_seeds > N_FLIPS:
        flips = np.random.default_rng(SEED).integers(2, size=(N_FLIPS, n_seeds))
    else:
        flips = np.arange(1 << n_seeds)[:, None] >> np.arange(n_seeds) & 1
    return np.asarray(1.0 - 2.0 * flips, dtype=np.float64)


def smallest_p(n_seeds: int) -> float:
    """Return the smallest p that `sign_flip_p` can reach: 2 / 2**n, 1 without seeds."""
    return min(1.0, 2 / min(1 << n_seeds, N_FLIPS + 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's adjusted p-values, in the order given."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p)
    steps = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(steps, 1.0)
    return [float(value) for value in adjusted]


def _scores(values: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise ValueError(f"scores must be one finite number per seed, got {array.tolist()}")
    return array


def _bca(values: NDArray[np.float64], smallest_spread: float) -> tuple[float, float] | None:
    if values.size < 2 or np.ptp(values) <= smallest_spread:
        return None
    rng = np.random.default_rng(SEED)
    result = stats.bootstrap((values,), np.mean, vectorized=True, method="BCa", random_state=rng)
    low, high = result.confidence_interval
    return float(low), float(high)
