"""The x of estimators: numbers, or data frames with categories and missing values."""

from typing import Any

import numpy as np
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.validation import check_consistent_length, validate_data

from lupi.loaders.tables.encoder import TableEncoder


def fit_features(
    estimator: Any, X: Any, y: Any, y_numeric: bool = False
) -> tuple[Any, Any, TableEncoder | None]:
    """Return x as finite numbers (N, F), y, and the encoder of columns, if one is needed.

    Complete numbers are used unchanged. Frames with categories or dates, and data with missing
    values, are encoded as tables in `lupi compare`: categories one-hot, missing values as the
    mean with an indicator.
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
            raise ValueError("X contains NaN, but the rows in fit had no missing values")
        return X
    if _is_frame(X):
        validate_data(estimator, X, reset=False, skip_check_array=True)
    else:
        X = validate_data(estimator, X, reset=False, **NUMBERS)
    return encoder.transform(_by_place(X)).astype(np.float64)


NUMBERS = {"accept_sparse": "csr", "dtype": np.float64, "ensure_all_finite": "allow-nan"}
"""Options of scikit-learn's validation of numbers."""


def _is_frame(X: Any) -> bool:
    return hasattr(X, "columns") and hasattr(X, "dtypes")


def _holds_numbers(frame: Any) -> bool:
    return all(getattr(dtype, "kind", "O") in "iufb" for dtype in frame.dtypes)


def _has_gaps(X: Any) -> bool:
    return bool(np.isnan(X.data if hasattr(X, "toarray") else X).any())


def _by_place(X: Any) -> Any:
    """Return a frame with columns named by position; scikit-learn has checked the names."""
    import pandas as pd

    if _is_frame(X):
        return X.set_axis([str(i) for i in range(X.shape[1])], axis="columns")
    dense = X.toarray() if hasattr(X, "toarray") else X
    return pd.DataFrame(dense, columns=[str(i) for i in range(dense.shape[1])])
