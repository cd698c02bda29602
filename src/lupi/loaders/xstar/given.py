"""The x* of estimators: numbers, some of which may be missing."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from lupi.errors import LupiError


def check_xstar(xstar: Any, n_rows: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return x* (N, D), and which rows (N,) have it; other rows of x* are zero.

    A row has x* if any of its numbers is present; missing ones are replaced by the column's mean.
    Without x* (None), D is 1 and no row has it.
    """
    if xstar is None:
        return np.zeros((n_rows, 1)), np.zeros(n_rows, dtype=np.bool_)
    if np.ndim(xstar) == 1:
        xstar = np.reshape(np.asarray(xstar), (-1, 1))
    values = check_array(
        xstar, accept_sparse=True, ensure_all_finite="allow-nan", input_name="xstar"
    )
    values = (values.toarray() if hasattr(values, "toarray") else values).astype(np.float64)
    if len(values) != n_rows:
        raise LupiError(
            f"xstar has {len(values)} rows, but X has {n_rows}; expected one row for each"
        )
    there = ~np.isnan(values)
    has = there.any(axis=1)
    mean = np.where(there, values, 0.0).sum(0) / np.maximum(there.sum(0), 1)
    return np.where(has[:, None], np.where(there, values, mean), 0.0), has
