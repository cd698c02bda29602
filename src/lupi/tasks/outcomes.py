"""What a row is predicted to be: one of several classes, or a number.

A class has logits. A number has a normal distribution: the network gives mean and log-variance of
the number, standardised by mean and deviation of all rows, so that scores of every size are in the
same units.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from lupi.core import OutputKind, Split
from lupi.errors import LupiError
from lupi.nn.gaussian import gaussian_cross_entropy, moments
from lupi.records import Metric

Kind = Literal["classification", "regression"]
Metrics = Literal["accuracy", "balanced_accuracy", "auc", "log_likelihood", "r2", "rmse"]
LOWER_IS_BETTER = ("rmse",)
COARSE = ("accuracy", "balanced_accuracy")
"""A few hundred validation rows tell too little of these: epochs are chosen by likelihood."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Classes by name, or a number with the mean and deviation of its rows."""

    classes: tuple[str, ...] = ()
    """Empty for a number."""
    mean: float = 0.0
    std: float = 1.0

    @classmethod
    def of(cls, values: Sequence[Any], kind: Literal["auto"] | Kind, where: str) -> "Outcome":
        """Find out what the values of a column are.

        auto: a number, unless there are only two different values or any value is not a number.
        """
        numbers = as_numbers(values)
        names = sorted({as_class(value) for value in values})
        if len(names) < 2:
            raise LupiError(f"{where} is {names[0]!r} in every row; there is nothing to learn")
        if kind == "regression" and numbers is None:
            bad = next(value for value in values if as_numbers([value]) is None)
            raise LupiError(f"{where}: regression needs finite numbers, got {bad!r}")
        if kind == "classification" or numbers is None or (kind == "auto" and len(names) == 2):
            return cls(tuple(names))
        return cls((), float(numbers.mean()), float(numbers.std()))

    @property
    def kind(self) -> Kind:
        """What the network does."""
        return "classification" if self.classes else "regression"

    @property
    def output_kind(self) -> OutputKind:
        """What its outputs are."""
        return "classes" if self.classes else "gaussian"

    @property
    def n_outputs(self) -> int:
        """How many numbers the network gives for a row."""
        return len(self.classes) or 2

    def encode(self, values: Sequence[Any], where: str) -> NDArray[Any]:
        """Return the values of a column as the network sees them, (N,)."""
        if not self.classes:
            numbers = as_numbers(values)
            if numbers is None:
                raise LupiError(f"{where}: expected finite numbers, as in the training rows")
            return ((numbers - self.mean) / self.std).astype(np.float32)
        places = {name: i for i, name in enumerate(self.classes)}
        for value in values:
            if as_class(value) not in places:
                raise LupiError(f"{where}: class {as_class(value)!r} is not in the training rows")
        return np.array([places[as_class(value)] for value in values], dtype=np.int64)

    def metric(self, name: str | None) -> Metric:
        """Return what a comparison is judged by; by default accuracy, or r2."""
        known = ["accuracy", "balanced_accuracy", "log_likelihood"]
        known += ["auc"] if len(self.classes) == 2 else []
        known = known if self.classes else ["r2", "rmse", "log_likelihood"]
        name = name or known[0]
        if name not in known:
            raise LupiError(
                f"metric: {name!r} does not fit {self.kind} of this target; choose among "
                f"{', '.join(known)}"
            )
        chosen_by = "log_likelihood" if name in COARSE else None
        return Metric(name, name not in LOWER_IS_BETTER, chosen_by)

    def example_loss(self, output: Tensor, y: Tensor) -> Tensor:
        """Return the cross-entropy, or the negative log-likelihood, of each row, (B,)."""
        if self.classes:
            return F.cross_entropy(output, y, reduction="none")
        return gaussian_cross_entropy(output, y)

    def metrics(self, output: Tensor, y: Tensor) -> dict[str, float]:
        """Return all scores of a split; rmse and log-likelihood in the target's own units."""
        fit = -self.example_loss(output, y).mean().item()
        if not self.classes:
            error = moments(output)[0] - y
            spread = (y - y.mean()).square().sum()
            return {
                "r2": (1 - error.square().sum() / spread.clamp(min=1e-12)).item(),
                "rmse": self.std * error.square().mean().sqrt().item(),
                "log_likelihood": fit - math.log(self.std),
            }
        right = (output.argmax(1) == y).float()
        scores = {
            "accuracy": right.mean().item(),
            "balanced_accuracy": float(np.mean([right[y == i].mean() for i in y.unique()])),
            "log_likelihood": fit,
        }
        if len(self.classes) == 2 and len(y.unique()) == 2:
            from sklearn.metrics import roc_auc_score

            scores["auc"] = float(roc_auc_score(y.numpy(), (output[:, 1] - output[:, 0]).numpy()))
        return scores

    def trivial(self, train: Split, test: Split) -> dict[str, float]:
        """Score the distribution of the training rows' targets, whatever x is."""
        y, target = (torch.cat([b.y for b in split.batches(4096)]) for split in (train, test))
        if self.classes:  # one row of each class more, so that no probability is 0
            output = (y.bincount(minlength=len(self.classes)) + 1.0).log()
        else:
            output = torch.stack([y.mean(), y.var(correction=0).clamp(min=1e-8).log()])
        return self.metrics(output.expand(len(target), -1), target)

    def is_uninformative(self, output: Tensor) -> bool:
        """Tell whether predictions do not change from row to row."""
        predicted = output.softmax(1) if self.classes else output[:, :1]
        return bool(predicted.std(0).max() < 1e-3)

    def describe(self, name: str) -> dict[str, Any]:
        """Return as plain values what the outputs of a student mean."""
        about: dict[str, Any] = {"name": name, "kind": self.kind}
        if self.classes:
            return about | {"classes": list(self.classes)}
        return about | {"mean": self.mean, "std": self.std}


def as_class(value: Any) -> str:
    """Return the name of a class: 1, 1.0 and "1" are the same."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()


def as_numbers(values: Sequence[Any]) -> NDArray[np.float64] | None:
    """Return values as finite numbers; None if one is not."""
    if any(isinstance(value, bool) for value in values):
        return None
    try:
        numbers = np.array([float(value) for value in values])
    except (ValueError, TypeError):
        return None
    return numbers if np.isfinite(numbers).all() else None
