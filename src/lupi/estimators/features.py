"""What estimators take as x: numbers, or the columns of a data frame with categories and gaps."""

from typing import Any

import numpy as np
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.validation import check_consistent_length, validate_data

from lupi.data.tables.encoder import TableEncoder


def fit_features(
    estimator: Any, X: Any, y: Any, y_numeric: bool = False
) -> tuple[Any, Any, TableEncoder | None]:
    """Return x as finite numbers (N, F), y, and what turns columns into x, if that is needed.

    Numbers without gaps are taken as they are. A frame with categories or dates, and anything
    with missing values, is encoded as `lupi compare` encodes tables: categories one-hot, a
    missing value as the mean, with an indicator.
    """
    if not _is_frame(X) or _holds_numbers(X):
        X, y = validate_data(estimator, X, y, reset=True, y_numeric=y_numeric, **NUMBERS)
        if not _has_gaps(X):
            return X, y, None
    else:
        validate_data(estimator, X, reset=True, skip_check_array=True)
        y = column_or_1d(check_array(y, ensure_2d=False, dtype=None, input_name="y"), warn=True)
        check_consistent_length(X, y)
    frame = _by_place(X)
    encoder = TableEncoder.lay_out(frame).fit(frame)
    return encoder.transform(frame).astype(np.float64), y, encoder


def read_features(estimator: Any, X: Any, encoder: TableEncoder | None) -> Any:
    """Return x of new rows, as `fit_features` did."""
    if encoder is None:
        X = validate_data(estimator, X, reset=False, **NUMBERS)
        if _has_gaps(X):
            raise ValueError("X contains NaN; the rows that were fitted had no missing values")
        return X
    if _is_frame(X):
        validate_data(estimator, X, reset=False, skip_check_array=True)
    else:
        X = validate_data(estimator, X, reset=False, **NUMBERS)
    return encoder.transform(_by_place(X)).astype(np.float64)


NUMBERS = {"accept_sparse": "csr", "dtype": np.float64, "ensure_all_finite": "allow-nan"}
"""How scikit-learn checks numbers."""


def _is_frame(X: Any) -> bool:
    return hasattr(X, "columns") and hasattr(X, "dtypes")


def _holds_numbers(frame: Any) -> bool:
    return all(getattr(dtype, "kind", "O") in "iufb" for dtype in frame.dtypes)


def _has_gaps(X: Any) -> bool:
    return bool(np.isnan(X.data if hasattr(X, "toarray") else X).any())


def _by_place(X: Any) -> Any:
    """Return a frame whose columns are named by their place: scikit-learn has checked the names."""
    import pandas as pd

    if _is_frame(X):
        return X.set_axis([str(i) for i in range(X.shape[1])], axis="columns")
    dense = X.toarray() if hasattr(X, "toarray") else X
    return pd.DataFrame(dense, columns=[str(i) for i in range(dense.shape[1])])
