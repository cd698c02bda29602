"""How strongly each of many columns relates to a target, in one pass over all of them.

Numbers are cut into bins of equal size and categories into their most frequent values, so the
share of the target's variance that the bins explain finds any curve. It is an upper bound on what
one column predicts, unless the curve has more turns than there are bins.
"""

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lupi.loaders.tables.encoder import texts

if TYPE_CHECKING:
    import pandas as pd

N_BINS = 16
QUANTILES = np.arange(1, N_BINS) / N_BINS
AT_ONCE = 1000
"""Columns that are looked at together."""

Floats = NDArray[np.float64]
Bins = NDArray[np.int8]


def explained(bins: Bins, target: Floats, pooled: bool = False) -> Floats:
    """Return the share of the variance of a target that each column explains where it is known.

    Args:
        bins: Of each value of columns (N, C), from `bins_of`.
        target: (N, K), such as indicators of classes, or a number.
        pooled: Return the share of all K together, instead of the largest one.

    Returns:
        (C,), adjusted for the number of bins.
    """
    found = [
        _explained(bins[:, start : start + AT_ONCE].astype(np.int64), target, pooled)
        for start in range(0, bins.shape[1], AT_ONCE)
    ]
    return np.concatenate(found) if found else np.zeros(0)


def _explained(bins: NDArray[np.int64], target: Floats, pooled: bool) -> Floats:
    n_columns = bins.shape[1]
    flat = (bins + (N_BINS + 1) * np.arange(n_columns)).ravel()
    size = (N_BINS + 1) * n_columns

    def by_bin(weights: Floats | None) -> Floats:
        spread = None if weights is None else np.repeat(weights, n_columns)
        sums = np.bincount(flat, spread, size).reshape(n_columns, -1)
        return sums[:, :N_BINS].astype(np.float64)  # without missing values

    counts = by_bin(None)
    n_known, n_bins = np.maximum(counts.sum(1), 1), (counts > 0).sum(1)
    parts = []
    for values in target.T:
        sums = by_bin(values)
        mean_part = sums.sum(1) ** 2 / n_known
        total = by_bin(values**2).sum(1) - mean_part
        parts.append(((sums**2 / np.maximum(counts, 1)).sum(1) - mean_part, total))
    between, total = (np.array(some) for some in zip(*parts, strict=True))  # (K, C)
    if pooled:
        between, total = between.sum(0, keepdims=True), total.sum(0, keepdims=True)
    left = np.clip(1 - between / np.maximum(total, 1e-12), 0, 1)
    share = 1 - left * (n_known - 1) / np.maximum(n_known - n_bins, 1)
    best: Floats = np.where(total > 1e-9, share, 0.0).max(0)
    return best


def bins_of(frame: "pd.DataFrame") -> Bins:
    """Return the bin of each value (N, C); missing values have one of their own, the last."""
    bins = np.full(frame.shape, N_BINS, dtype=np.int8)
    whole = [i for i, dtype in enumerate(frame.dtypes) if getattr(dtype, "kind", "O") in "iuf"]
    for start in range(0, len(whole), AT_ONCE):
        some = whole[start : start + AT_ONCE]
        numbers = frame.iloc[:, some].to_numpy(dtype=np.float64, na_value=np.nan)
        bins[:, some] = _number_bins(numbers)
    for i in set(range(frame.shape[1])).difference(whole):
        bins[:, i] = _category_bins(frame.iloc[:, i])
    return bins


def _number_bins(numbers: Floats) -> Bins:
    """Return the bins of numbers (N, C): of equal size, or one per value if there are few."""
    bins = np.full(numbers.shape, N_BINS, dtype=np.int8)
    ordered = np.sort(numbers, axis=0)
    known = np.isfinite(numbers)
    many = known.all(0) & ((np.diff(ordered, axis=0) > 0).sum(0) >= N_BINS)
    edges = np.quantile(ordered[:, many], QUANTILES, axis=0)  # (N_BINS - 1, M)
    bins[:, many] = np.sum([numbers[:, many] >= edge for edge in edges], axis=0)
    for i in np.flatnonzero(~many):
        values = numbers[known[:, i], i]
        distinct = np.unique(values)
        if len(distinct) <= N_BINS:
            bins[known[:, i], i] = np.searchsorted(distinct, values)
        else:
            edge = np.quantile(values, QUANTILES)
            bins[known[:, i], i] = np.searchsorted(edge, values, side="right")
    return bins


def _category_bins(values: "pd.Series[Any]") -> Bins:
    names = texts(values)
    frequent = Counter(name for name in names if name is not None).most_common(N_BINS - 1)
    place = {name: i for i, (name, _) in enumerate(frequent)}
    codes = [N_BINS if name is None else place.get(name, N_BINS - 1) for name in names]
    return np.array(codes, dtype=np.int8)
