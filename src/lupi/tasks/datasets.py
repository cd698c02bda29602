"""`lupi.dataset_task`: a task from torch datasets and a network of the user."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lupi.core import Batch, Bools, Outcome, RowNumbers, Rows, RunRows, Shown, Task
from lupi.errors import LupiError
from lupi.loaders.division import GivenParts
from lupi.loaders.tables.vectors import VectorSplit
from lupi.loaders.xstar.controls import control_maps, control_vectors
from lupi.settings import Settings
from lupi.subsets import Part


def dataset_task(
    train: Any,
    val: Any,
    test: Any,
    network: Callable[[], nn.Module],
    *,
    kind: Literal["classification", "regression"] = "classification",
    metric: str | None = None,
) -> Task:
    """Return a task with rows and a network of your own: classification or regression.

    All rows are read into memory. x and x* are used as they are: scale them yourself. Every seed
    draws its training rows from `train`; validation and test rows are the same for all.

    Args:
        train: a torch dataset, or any sequence, of (x, x*, y). x* is a vector, or a map over the
            places of x with 1 on what matters: (1, H, W) over pixels, (1, T) over words. NaN or
            None: this row has no x*.
        val: of (x, y), by which the best epoch is chosen.
        test: of (x, y).
        network: a function without arguments that builds a new network from x to logits
            (classification), or to mean and log-variance of a number (regression). Noise enters
            at its `nn.Dropout` layers.
        kind: whether y is a class, 0, 1, …, or a number.
        metric: a score such as balanced_accuracy, auc or mae; by default accuracy, or r2. All
            scores are recorded.
    """
    rows = _DatasetRows(train, val, test, network, kind)
    division = GivenParts(
        {part: len(y) for part, y in rows.y.items()}, lambda seed: rows.classes_of_train
    )
    maps = rows.xstar.dim() - 2  # axes of a map beside rows and channels
    return Task(
        rows,
        division,
        division.design,
        rows.outcome,
        rows.outcome.metric(metric),
        Settings(),
        xstar_kind="region" if maps > 0 else "vector",
        places=None if maps < 1 else "words" if maps == 1 else "pixels",
        xstar_dim=rows.xstar_dim,
    )


class _DatasetRows(Rows):
    """All rows in memory; nothing is fitted, so they are those of every run."""

    def __init__(
        self, train: Any, val: Any, test: Any, network: Callable[[], nn.Module], kind: str
    ) -> None:
        x, xstar, y = _columns(train, 3, "train")
        self.xstar, self._has = _privileged(xstar)
        self.xstar_dim = self.xstar.shape[1]
        given: dict[Part, Any] = {
            "train": (x, y),
            "val": _columns(val, 2, "val"),
            "test": _columns(test, 2, "test"),
        }
        self.x = {part: _stacked(x, f"{part}: x") for part, (x, _) in given.items()}
        self.y: dict[Part, NDArray[Any]] = {
            part: np.asarray([_number(v) for v in y]) for part, (_, y) in given.items()
        }
        every = np.concatenate(list(self.y.values()))
        if kind == "classification":
            _check_classes(every)
            self.outcome = Outcome(tuple(str(i) for i in range(int(every.max()) + 1)))
        else:
            own = self.y["train"]
            self.outcome = Outcome((), float(own.mean()), float(own.std()) or 1.0)
        self.build = network
        self._check_network()

    @property
    def classes_of_train(self) -> NDArray[np.int64]:
        """Class of each training row; zeros for numbers."""
        y = self.y["train"]
        return y.astype(np.int64) if self.outcome.classes else np.zeros(len(y), dtype=np.int64)

    def fit(self, parts: Mapping[Part, RowNumbers], seed: int, network: Any) -> "_DatasetRun":
        """Return the rows of a run."""
        return _DatasetRun(self, parts)

    def part(self, part: Part, rows: RowNumbers) -> Batch:
        """Return some rows, without x*."""
        y = self.y[part][rows]
        if self.outcome.classes:
            return Batch(self.x[part][rows], torch.from_numpy(y.astype(np.int64)))
        scaled = (y - self.outcome.mean) / self.outcome.std
        return Batch(self.x[part][rows], torch.from_numpy(scaled.astype(np.float32)))

    def has_xstar(self, part: Part, rows: RowNumbers) -> Bools:
        """Return which rows have x*: training rows only."""
        if part != "train":
            return np.zeros(len(rows), dtype=np.bool_)
        return self._has.numpy()[rows]

    @torch.no_grad()
    def _check_network(self) -> None:
        n_outputs = self.outcome.n_outputs
        with torch.random.fork_rng(devices=[]):
            net = self.build()
            if not isinstance(net, nn.Module):
                raise LupiError(
                    "network: expected a function that builds an nn.Module, got one that returns "
                    f"{type(net).__name__}"
                )
            shape = tuple(net.eval()(self.x["train"][:2]).shape)
        if shape != (2, n_outputs):
            what = f"{n_outputs} classes" if self.outcome.classes else "mean and log-variance"
            raise LupiError(
                f"network: gives {shape} for two rows; expected {(2, n_outputs)} for {what}"
            )


class _DatasetRun(RunRows):
    """Rows of a run, as they were given."""

    def __init__(self, rows: _DatasetRows, parts: Mapping[Part, RowNumbers]) -> None:
        self._rows, self._parts = rows, parts
        self.outcome, self.xstar_dim = rows.outcome, rows.xstar_dim

    def has_xstar(self, part: Part) -> Bools:
        """Return which rows of a part have x*."""
        return self._rows.has_xstar(part, self._parts[part])

    def network(self) -> nn.Module:
        """Build the student with new random weights."""
        return self._rows.build()

    def example(self) -> Tensor:
        """Return two rows of x."""
        return self._rows.x["train"][:2]

    def split(self, part: Part, shown: Shown | None = None) -> VectorSplit:
        """Return the rows of a part."""
        rows = self._parts[part]
        batch = self._rows.part(part, rows)
        if shown is None:
            return VectorSplit(batch)
        has, xstar = torch.from_numpy(shown.has), self._rows.xstar[rows].clone()
        if has.any():
            change = control_vectors if xstar.dim() == 2 else control_maps
            xstar[has] = torch.from_numpy(change(xstar[has].numpy(), shown.control, shown.seed))
        xstar[~has] = 0
        return VectorSplit(batch._replace(xstar=xstar, has_xstar=has))


def _columns(rows: Any, n: int, name: str) -> tuple[list[Any], ...]:
    """Return x, x* and y of all rows as lists."""
    expected = "(x, x*, y)" if n == 3 else "(x, y)"
    try:
        parts = [tuple(rows[i]) for i in range(len(rows))]
    except TypeError:
        raise LupiError(f"{name}: expected a dataset of {expected}, got {type(rows)}") from None
    if not parts or any(len(row) != n for row in parts):
        lengths = sorted({len(row) for row in parts}) or "no rows"
        raise LupiError(f"{name}: expected rows of {expected}, got {lengths} parts a row")
    return tuple(list(column) for column in zip(*parts, strict=True))


def _stacked(values: list[Any], where: str) -> Tensor:
    tensors = [torch.as_tensor(value) for value in values]
    shapes = {tuple(tensor.shape) for tensor in tensors}
    if len(shapes) > 1:
        raise LupiError(
            f"{where}: rows of different shapes, such as {sorted(shapes)[:2]}; pad them"
        )
    stacked = torch.stack(tensors)
    return stacked.float() if stacked.is_floating_point() else stacked


def _privileged(values: list[Any]) -> tuple[Tensor, Tensor]:
    """Return x* (N, …) with zeros where it is missing, and which rows (N,) have it."""
    first = next((value for value in values if value is not None), None)
    if first is None:
        raise LupiError("train: no row has x*; expected it in the second place of some rows")
    shape = torch.as_tensor(first).reshape(-1 if np.ndim(first) < 2 else first.shape).shape
    missing = torch.full(shape, torch.nan)
    rows = [missing if v is None else torch.as_tensor(v).float().reshape(shape) for v in values]
    xstar = torch.stack(rows)
    has = xstar.flatten(1).isfinite().all(1)
    return xstar.nan_to_num(), has


def _number(value: Any) -> float:
    return float(cast(Any, value))


def _check_classes(y: NDArray[Any]) -> None:
    if not (np.isfinite(y).all() and (y == np.rint(y)).all() and y.min() >= 0):
        raise LupiError("y: classes are numbered 0, 1, …; for a number give kind='regression'")
