"""Weights of rows: a column of the table, and weights of classes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, get_args

import numpy as np
from numpy.typing import NDArray

from lupi.errors import LupiError
from lupi.loaders.tables.encoder import is_number
from lupi.loaders.tables.parts import LabelledRows
from lupi.loaders.tables.settings import TableSettings, Use
from lupi.settings import unknown_name
from lupi.subsets import Part

if TYPE_CHECKING:
    import pandas as pd

Weights = NDArray[np.float64]


def read_weights(frame: "pd.DataFrame", part: Part, settings: TableSettings) -> Weights | None:
    """Return how much each row of a part counts, (N,); None where that is not asked.

    Held-out rows need weights only if they count in the metrics.
    """
    name = settings.weights
    if name is None or (part != "train" and not settings.weighs("metrics")):
        return None
    if name not in frame.columns:
        columns = [str(column) for column in frame.columns]
        raise LupiError(f"weights: {part} rows: {unknown_name('column', name, columns)}")
    values = frame[name]
    if not is_number(values):
        raise LupiError(f"weights: column {name!r} has {values.iloc[0]!r}; expected numbers")
    weights = values.to_numpy(dtype=np.float64, na_value=np.nan)
    bad = ~((weights < 1e30) & (weights >= 0))
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        raise LupiError(
            f"weights: column {name!r} is {weights[first]} in row {first + 1} of {part}, one of "
            f"{bad.sum():,}; expected numbers from 0 to 1e30: correct these rows, or leave "
            "them out"
        )
    return _some(weights, f"column {name!r} is 0 in all {part} rows")


def check_class_weights(settings: TableSettings, classes: Sequence[str]) -> None:
    """Refuse weights of classes that the target has not."""
    given = settings.class_weights
    if given is not None and not classes:
        raise LupiError(
            f"class_weights: target {settings.target!r} is a number; leave them out, or set "
            "kind: classification"
        )
    for name in given if isinstance(given, dict) else ():
        if name not in classes:
            raise LupiError(f"class_weights: {unknown_name('class', name, list(classes))}")


def loss_weights(
    rows: LabelledRows, settings: TableSettings, classes: Sequence[str]
) -> Weights | None:
    """Return the weight of each training row of a run in the loss, 1 on average; None: all 1."""
    given = settings.class_weights
    by_row = rows.weights if settings.weighs("loss") else None
    if by_row is None and given is None:
        return None
    weights = np.ones(len(rows.y)) if by_row is None else by_row
    if given == "balanced":
        counts = np.bincount(rows.y, weights, minlength=len(classes))
        weights = weights / np.where(counts > 0, counts, 1.0)[rows.y]
    elif given is not None:
        weights = weights * np.array([given.get(name, 1.0) for name in classes])[rows.y]
    mean = _some(weights, f"all {len(weights)} training rows of a run have weight 0").mean()
    return np.asarray(weights / mean)


def metric_weights(rows: LabelledRows, part: Part, settings: TableSettings) -> Weights | None:
    """Return the weight of each held-out row in the metrics; None: all count the same."""
    if rows.weights is None or not settings.weighs("metrics"):
        return None
    return _some(rows.weights, f"all {len(rows.y)} {part} rows of a run have weight 0")


def describe_weights(rows: LabelledRows, settings: TableSettings) -> str:
    """Describe the weights and where they are used."""
    parts = []
    if rows.weights is not None:
        low, mean, high = rows.weights.min(), rows.weights.mean(), rows.weights.max()
        uses = " and ".join(use for use in get_args(Use) if settings.weighs(use))
        n_none = int((rows.weights == 0).sum())
        nothing = f"; {n_none:,} rows have weight 0" if n_none else ""
        parts.append(
            f"{settings.weights}, {low:.4g} to {high:.4g} (mean {mean:.4g}), in the {uses}{nothing}"
        )
    given = settings.class_weights
    if isinstance(given, dict):
        parts.append("classes " + ", ".join(f"{name}: {w:g}" for name, w in given.items()))
    elif given is not None:
        parts.append("classes balanced in the loss")
    return "; ".join(parts)


def _some(weights: Weights, problem: str) -> Weights:
    """Return weights of which some are more than 0."""
    if not weights.any():
        raise LupiError(f"weights: {problem}")
    return weights
