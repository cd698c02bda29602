"""`lupi.DatasetTask`: a task from torch datasets and a network of the user."""

from collections.abc import Callable
from typing import Any, Literal, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lupi.core import Batch, Control, GivenRows, OutputKind, Places, Splits, XstarKind
from lupi.errors import LupiError
from lupi.loaders.subsets import nested_rows, rows_with_xstar
from lupi.loaders.tables.vectors import VectorSplit
from lupi.loaders.xstar.controls import control_maps, control_vectors
from lupi.tasks.outcomes import Outcome, ScoredByOutcome


class DatasetTask(ScoredByOutcome, GivenRows):
    """Classification or regression with rows and a network of your own.

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

    def __init__(
        self,
        train: Any,
        val: Any,
        test: Any,
        network: Callable[[], nn.Module],
        *,
        kind: Literal["classification", "regression"] = "classification",
        metric: str | None = None,
    ) -> None:
        x, xstar, y = _columns(train, 3, "train")
        self._x, self._y = _stacked(x, "train: x"), np.asarray([_number(v) for v in y])
        self._xstar, self._has = _privileged(xstar)
        held_out = {name: _columns(rows, 2, name) for name, rows in (("val", val), ("test", test))}
        labels = {name: np.asarray([_number(v) for v in y]) for name, (_, y) in held_out.items()}
        self._held_out_x = {name: _stacked(x, f"{name}: x") for name, (x, _) in held_out.items()}
        every = np.concatenate([self._y, *labels.values()])
        if kind == "classification":
            _check_classes(every)
            self.outcome = Outcome(tuple(str(i) for i in range(int(every.max()) + 1)))
        else:
            self.outcome = Outcome((), float(self._y.mean()), float(self._y.std()) or 1.0)
        self._labels = {name: self._target(values) for name, values in labels.items()}
        self.metric = self.outcome.metric(metric)
        self.output_kind: OutputKind = self.outcome.output_kind
        self.n_outputs = self.outcome.n_outputs
        self.n_rows = len(self._y)
        is_map = self._xstar.dim() > 2
        self.xstar_kind: XstarKind = "region" if is_map else "vector"
        self.xstar_dim = self._xstar.shape[1]
        self.places: Places | None = None
        if is_map:
            self.places = "words" if self._xstar.dim() == 3 else "pixels"
        self._build = network
        self._check_network()

    def splits(
        self,
        size: int,
        seed: int,
        control: Control = "real",
        xstar_frac: float = 1.0,
        reveal: bool = False,
    ) -> Splits:
        """Return `size` training rows with x* under a control, and all of validation and test."""
        if reveal:
            raise LupiError(
                "an oracle sees x* at test; the validation and test rows of datasets have none: "
                "leave the oracle out"
            )
        labels = self._y if self.outcome.classes else np.zeros(len(self._y))
        rows = torch.from_numpy(nested_rows(labels.astype(np.int64), size, seed, balanced=False))
        has, xstar = self._has[rows].clone(), self._xstar[rows].clone()
        has[has.clone()] = torch.from_numpy(rows_with_xstar(int(has.sum()), xstar_frac, seed))
        if has.any():
            change = control_vectors if self.places is None else control_maps
            xstar[has] = torch.from_numpy(change(xstar[has].numpy(), control, seed))
        xstar[~has] = 0
        y = self._target(self._y[rows.numpy()])
        val, test = (
            VectorSplit(Batch(self._held_out_x[name], self._labels[name]))
            for name in ("val", "test")
        )
        return Splits(VectorSplit(Batch(self._x[rows], y, xstar, has)), val, test)

    def network(self) -> nn.Module:
        """Build the student with new random weights."""
        return self._build()

    def example(self) -> Tensor:
        """Return two rows of x."""
        return self._x[:2]

    def _target(self, y: NDArray[Any]) -> Tensor:
        if self.outcome.classes:
            return torch.from_numpy(y.astype(np.int64))
        scaled = (y - self.outcome.mean) / self.outcome.std
        return torch.from_numpy(scaled.astype(np.float32))

    @torch.no_grad()
    def _check_network(self) -> None:
        with torch.random.fork_rng(devices=[]):
            net = self._build()
            if not isinstance(net, nn.Module):
                raise LupiError(
                    "network: expected a function that builds an nn.Module, got one that returns "
                    f"{type(net).__name__}"
                )
            shape = tuple(net.eval()(self.example()).shape)
        if shape != (2, self.n_outputs):
            what = f"{self.n_outputs} classes" if self.outcome.classes else "mean and log-variance"
            raise LupiError(
                f"network: gives {shape} for two rows; expected {(2, self.n_outputs)} for {what}"
            )


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
