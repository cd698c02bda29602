"""How strongly each of many columns relates to a target, in one pass over all of them.

Numbers are cut into bins of equal size and categories into their most frequent values, so the
share of the target's variance that the bins explain finds any curve. It is an upper bound on what
one column predicts, unless the curve has more turns than there are bins.
"""

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lupi.loaders.tables.encoder import is_number, texts

if TYPE_CHECKING:
    import pandas as pd

N_BINS = 16
AT_ONCE = 1000
"""Columns that are looked at together."""

Floats = NDArray[np.float64]


def explained(frame: "pd.DataFrame", target: Floats, pooled: bool = False) -> Floats:
    """Return the share of the variance of a target that each column explains where it is known.

    Args:
        frame: Rows (N) of columns.
        target: (N, K), such as indicators of classes, or a number.
        pooled: Return the share of all K together, instead of the largest one.

    Returns:
        (C,), adjusted for the number of bins.
    """
    found = [
        _explained(frame.iloc[:, start : start + AT_ONCE], target, pooled)
        for start in range(0, frame.shape[1], AT_ONCE)
    ]
    return np.concatenate(found) if found else np.zeros(0)


def _explained(frame: "pd.DataFrame", target: Floats, pooled: bool) -> Floats:
    n_columns = frame.shape[1]
    bins = np.column_stack([_bins(frame.iloc[:, i]) for i in range(n_columns)])  # (N, C)
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


def _bins(values: "pd.Series[Any]") -> NDArray[np.int64]:
    """Return the bin of each value (N,); missing values have one of their own, the last."""
    if is_number(values):
        numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
        known = np.isfinite(numbers)
        bins = np.full(len(numbers), N_BINS)
        distinct = np.unique(numbers[known])
        if len(distinct) <= N_BINS:
            bins[known] = np.searchsorted(distinct, numbers[known])
        else:
            edges = np.quantile(numbers[known], np.arange(1, N_BINS) / N_BINS)
            bins[known] = np.searchsorted(edges, numbers[known], side="right")
        return bins
    names = texts(values)
    frequent = Counter(name for name in names if name is not None).most_common(N_BINS - 1)
    place = {name: i for i, (name, _) in enumerate(frequent)}
    codes = [N_BINS if name is None else place.get(name, N_BINS - 1) for name in names]
    return np.array(codes, dtype=np.int64)
