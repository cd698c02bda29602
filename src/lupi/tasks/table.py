"""Rows of a table: columns are x, x* or the target, a class or a number.

A class has logits. A number has a normal distribution: the network gives mean and log-variance
of the target, standardised by mean and deviation of all rows to choose training rows from, so
that scores of every size are in the same units.
"""

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from lupi.core import Batch, Control, OutputKind, Places, Split, Splits, XstarKind
from lupi.data.subsets import nested_rows, rows_with_xstar
from lupi.data.tables.columns import TableSettings, load_table
from lupi.data.tables.encoder import TableEncoder
from lupi.data.tables.leaks import find_leaks
from lupi.data.tables.vectors import VectorSplit
from lupi.data.xstar.controls import control_vectors
from lupi.errors import LupiError
from lupi.nn.gaussian import gaussian_cross_entropy, moments
from lupi.nn.mlp import MLP
from lupi.records import Metric
from lupi.settings import Settings

if TYPE_CHECKING:
    import pandas as pd

LOWER_IS_BETTER = ("loss", "rmse", "nll")


class TableNetworkSettings(Settings):
    """The student for rows of a table."""

    n_hidden: int = Field(64, ge=1, le=8192)
    """Units of each hidden layer."""
    n_layers: int = Field(2, ge=2, le=8)
    """Hidden layers; all but the last are the `trunk`."""
    dropout: float = Field(0.5, ge=0, lt=1)
    """Bernoulli rate after each hidden layer; sites: `trunk.drop1` …, the last one `head.drop2`."""


def build_network(settings: TableNetworkSettings, n_in: int, n_outputs: int) -> MLP:
    """Build a student for vectors of a length."""
    return MLP(n_in, n_outputs, settings.n_hidden, settings.n_layers, settings.dropout)


class TableTask:
    """Classification or regression of rows; x* is a vector made of the privileged columns."""

    Settings = TableSettings
    Network = TableNetworkSettings
    xstar_kind: XstarKind = "vector"
    places: Places | None = None

    def __init__(self, settings: TableSettings, network: TableNetworkSettings) -> None:
        self._table = table = load_table(settings)
        self.network_settings = network
        self._target = settings.target
        self._csv = settings.model_dump(include={"separator", "header", "decimal"})
        self.is_regression = table.kind == "regression"
        self.output_kind: OutputKind = "gaussian" if self.is_regression else "classes"
        self.metric = self._metric(settings.metric)
        pool, y = table.frames[0], table.targets[0]
        self._layout = TableEncoder.lay_out(pool[list(table.features)], settings.categorical)
        self._xstar_layout = TableEncoder.lay_out(
            pool[list(table.privileged)], settings.categorical, indicators=False
        )
        self.xstar_dim = self._xstar_layout.width
        self._mean = float(y.mean()) if self.is_regression else 0.0
        self._std = float(y.std()) if self.is_regression else 1.0
        without = int((~self._has_xstar(pool)).sum())
        self.found = {"training row without x*": without} if without else {}

    def for_run(self, size: int, seed: int) -> Self:
        """Return the task as a run sees it."""
        return self

    @property
    def n_train(self) -> int:
        """How many rows there are to choose training rows from."""
        return len(self._table.targets[0])

    @property
    def can_reveal(self) -> bool:
        """Whether held-out rows have x* that an oracle could be shown."""
        return all(self._has_xstar(frame).any() for frame in self._table.frames[1:])

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What in the table may make a comparison say too much."""
        return tuple(find_leaks(self._table))

    def splits(
        self,
        size: int,
        seed: int,
        control: Control = "real",
        xstar_frac: float = 1.0,
        reveal: bool = False,
    ) -> Splits:
        """Return `size` training rows with x* under a control, and all of validation and test.

        Classes are as frequent as in the table. The fraction is one of the training rows that
        have x* at all. With `reveal` (an oracle) held-out rows have x* too, under that control.
        """
        if reveal and not self.can_reveal:
            raise LupiError(
                "an oracle sees x* at test, and the validation or test rows of this table have "
                "none: leave the oracle out"
            )
        frame, y = self._training_rows(size, seed)
        has = self._has_xstar(frame)
        has[has] = rows_with_xstar(int(has.sum()), xstar_frac, seed)
        encoder = self._layout.fit(frame)
        xstar_encoder = self._xstar_layout.fit(frame[has])

        def rows(
            frame: "pd.DataFrame", y: NDArray[Any], has: NDArray[np.bool_] | None
        ) -> VectorSplit:
            x, target = torch.from_numpy(encoder.transform(frame)), self._as_target(y)
            if has is None:
                return VectorSplit(Batch(x, target))
            xstar = np.zeros((len(frame), self.xstar_dim), dtype=np.float32)
            if has.any():
                xstar[has] = control_vectors(xstar_encoder.transform(frame[has]), control, seed)
            return VectorSplit(Batch(x, target, torch.from_numpy(xstar), torch.from_numpy(has)))

        val, test = (
            rows(part, target, self._has_xstar(part) if reveal else None)
            for part, target in zip(self._table.frames[1:], self._table.targets[1:], strict=True)
        )
        return Splits(rows(frame, y, has), val, test)

    def preprocessing(self, size: int, seed: int) -> dict[str, Any]:
        """Return what a student needs to predict new rows, as plain values; x* has no part in it.

        `csv` is how a file is read, `features` makes a `TableEncoder`; `target` says what the
        outputs mean: the class of each logit, or the mean and deviation that standardised it.
        """
        target: dict[str, Any] = {"name": self._target, "kind": self._table.kind}
        if self.is_regression:
            target |= {"mean": self._mean, "std": self._std}
        else:
            target["classes"] = list(self._table.classes)
        frame, _ = self._training_rows(size, seed)
        features = self._layout.fit(frame).to_json()
        return {"csv": self._csv, "features": features, "target": target}

    def network(self) -> nn.Module:
        """Build the student, freshly initialised."""
        n_outputs = 2 if self.is_regression else len(self._table.classes)
        return build_network(self.network_settings, self._layout.width, n_outputs)

    def example(self) -> Tensor:
        """Return two rows."""
        return torch.zeros(2, self._layout.width)

    def example_loss(self, output: Tensor, y: Tensor) -> Tensor:
        """Return the cross-entropy, or the negative log-likelihood, of each row, (B,)."""
        if self.is_regression:
            return gaussian_cross_entropy(output, y)
        return F.cross_entropy(output, y, reduction="none")

    def metrics(self, output: Tensor, y: Tensor) -> dict[str, float]:
        """Return accuracy, balanced accuracy, loss and, of two classes, auc; or r2, rmse, nll.

        rmse and nll are in the target's own units.
        """
        if self.is_regression:
            error = moments(output)[0] - y
            spread = (y - y.mean()).square().sum()
            return {
                "r2": (1 - error.square().sum() / spread.clamp(min=1e-12)).item(),
                "rmse": self._std * error.square().mean().sqrt().item(),
                "nll": gaussian_cross_entropy(output, y).mean().item() + math.log(self._std),
            }
        right = (output.argmax(1) == y).float()
        scores = {
            "accuracy": right.mean().item(),
            "balanced_accuracy": float(np.mean([right[y == i].mean() for i in y.unique()])),
            "loss": F.cross_entropy(output, y).item(),
        }
        if len(self._table.classes) == 2 and len(y.unique()) == 2:
            from sklearn.metrics import roc_auc_score

            scores["auc"] = float(roc_auc_score(y.numpy(), (output[:, 1] - output[:, 0]).numpy()))
        return scores

    def trivial(self, train: Split, test: Split) -> dict[str, float]:
        """Score the distribution of the training rows' targets, whatever x is."""
        y, target = (torch.cat([b.y for b in split.batches(4096)]) for split in (train, test))
        if self.is_regression:
            output = torch.stack([y.mean(), y.var(correction=0).clamp(min=1e-8).log()])
        else:  # one row of each class more, so that no probability is 0
            output = (y.bincount(minlength=len(self._table.classes)) + 1.0).log()
        return self.metrics(output.expand(len(target), -1), target)

    def is_uninformative(self, output: Tensor) -> bool:
        """Tell whether predictions do not change from row to row."""
        predicted = output[:, :1] if self.is_regression else output.softmax(1)
        return bool(predicted.std(0).max() < 1e-3)

    def _metric(self, name: str | None) -> Metric:
        known = ["r2", "rmse", "nll"] if self.is_regression else ["accuracy", "balanced_accuracy"]
        if not self.is_regression:
            known += ["loss", *(["auc"] if len(self._table.classes) == 2 else [])]
        name = name or known[0]
        if name not in known:
            raise LupiError(
                f"metric: {name!r} is none of {self._table.kind} "
                f"with this target; choose among {', '.join(known)}"
            )
        return Metric(name, higher_is_better=name not in LOWER_IS_BETTER)

    def _training_rows(self, size: int, seed: int) -> "tuple[pd.DataFrame, NDArray[Any]]":
        y = self._table.targets[0]
        labels = np.zeros(len(y), dtype=np.int64) if self.is_regression else y
        rows = nested_rows(labels, size, seed, balanced=False)
        return self._table.frames[0].iloc[rows], y[rows]

    def _has_xstar(self, frame: "pd.DataFrame") -> NDArray[np.bool_]:
        """Return which rows have any privileged value; held-out rows may lack the columns."""
        there = [name for name in self._table.privileged if name in frame.columns]
        if len(there) < len(self._table.privileged):
            return np.zeros(len(frame), dtype=np.bool_)
        return frame[there].notna().any(axis=1).to_numpy(dtype=np.bool_).copy()

    def _as_target(self, y: NDArray[Any]) -> Tensor:
        if not self.is_regression:
            return torch.from_numpy(y)
        return torch.from_numpy(((y - self._mean) / self._std).astype(np.float32))
