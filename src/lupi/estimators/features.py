"""The x of estimators: numbers, or data frames with categories and missing values."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.validation import check_consistent_length, validate_data

from lupi.errors import LupiError
from lupi.loaders.tables.encoder import TableEncoder

NUMBERS = {"accept_sparse": "csr", "dtype": np.float64, "ensure_all_finite": "allow-nan"}
"""Options of scikit-learn's validation of numbers."""
LARGEST = 1e100
"""The variance of larger numbers is too large for a float; `fit` refuses them."""


def from_torch(values: Any) -> Any:
    """Return a tensor as an array, of any type that has numbers; other values as they are."""
    if not isinstance(values, torch.Tensor):
        return values
    try:
        dense = (values.dequantize() if values.is_quantized else values.to_dense()).detach().cpu()
        is_float = dense.is_floating_point() and dense.dtype != torch.float64
        return (dense.float() if is_float else dense).numpy()
    except (TypeError, RuntimeError, NotImplementedError) as error:
        raise LupiError(
            f"a tensor of type {values.dtype} on {values.device} has no numbers that can be read: "
            f"{error}"
        ) from None


def fit_features(
    estimator: Any, X: Any, y: Any, y_numeric: bool = False
) -> tuple[NDArray[np.float32], Any, TableEncoder]:
    """Return x as numbers (N, F), y, and the encoder of columns.

    Columns are encoded as tables in `lupi compare`: numbers standardised, categories one-hot,
    missing values as the mean with an indicator.
    """
    X, y = from_torch(X), from_torch(y)
    if not _is_frame(X) or _holds_numbers(X):
        X, y = validate_data(estimator, X, y, reset=True, y_numeric=y_numeric, **NUMBERS)
        _refuse_large(X.data if hasattr(X, "toarray") else X)
    else:
        validate_data(estimator, X, reset=True, skip_check_array=True)
        y = column_or_1d(check_array(y, ensure_2d=False, dtype=None, input_name="y"), warn=True)
        check_consistent_length(X, y)
    frame = _as_frame(estimator, X)
    encoder = TableEncoder.lay_out(frame).fit(frame)
    return encoder.transform(frame), y, encoder


def read_features(estimator: Any, X: Any, encoder: TableEncoder) -> NDArray[np.float32]:
    """Return x of new rows, as `fit_features` did."""
    X = from_torch(X)
    has_gaps = any(column.indicator for column in encoder.columns)
    if _is_frame(X) and not _holds_numbers(X):
        validate_data(estimator, X, reset=False, skip_check_array=True)
    else:
        X = validate_data(estimator, X, reset=False, **NUMBERS)
        if not has_gaps and np.isnan(X.data if hasattr(X, "toarray") else X).any():
            raise ValueError("X contains NaN, but the rows in fit had no missing values")
    return encoder.transform(_as_frame(estimator, X))


def _refuse_large(values: Any) -> None:
    largest = np.abs(values).max(initial=0, where=~np.isnan(values))
    if largest > LARGEST:
        raise ValueError(
            f"X has values up to {largest:.3g}, whose variance is too large for a float; correct "
            "them, or divide the column by a constant"
        )


def _is_frame(X: Any) -> bool:
    return hasattr(X, "columns") and hasattr(X, "dtypes")


def _holds_numbers(frame: Any) -> bool:
    return all(getattr(dtype, "kind", "O") in "iufb" for dtype in frame.dtypes)


def _as_frame(estimator: Any, X: Any) -> Any:
    """Return a frame whose columns have the names of those in fit, or x0, x1 and so on."""
    import pandas as pd

    names = getattr(estimator, "feature_names_in_", [f"x{i}" for i in range(X.shape[1])])
    if _is_frame(X):
        return X.set_axis(list(map(str, names)), axis="columns")
    dense = X.toarray() if hasattr(X, "toarray") else X
    return pd.DataFrame(dense.clip(-LARGEST, LARGEST), columns=list(map(str, names)))
