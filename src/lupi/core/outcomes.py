"""What is predicted for a row: one of several classes, or a number.

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

from lupi.core.batch import Split
from lupi.core.gaussian import gaussian_cross_entropy, moments
from lupi.core.scores import score_classes, score_numbers
from lupi.errors import LupiError
from lupi.records import Metric
from lupi.settings import format_value

Kind = Literal["classification", "regression"]
OutputKind = Literal["classes", "gaussian", "tokens"]
"""classes: logits (B, K); gaussian: mean and log-variance of a number, (B, 2); tokens: logits of
each word of a sequence (B, T, K), where T differs between batches."""
NUMBER_SCORES = ("r2", "rmse", "mse", "mae", "log_likelihood")
CLASS_SCORES = (
    "accuracy",
    "balanced_accuracy",
    "f1_macro",
    "log_likelihood",
    "log_loss",
    "calibration_error",
)
TWO_CLASS_SCORE = "auc"
WEIGHTED = "weighted_"
"""Prefix of the names of weighted scores."""
LOWER_IS_BETTER = ("rmse", "mse", "mae", "log_loss", "calibration_error")
COARSE = ("accuracy", "balanced_accuracy", "f1_macro", "calibration_error")
"""Scores that are too coarse to select an epoch by a few hundred rows: likelihood is used."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Names of classes, or mean and standard deviation of a number."""

    classes: tuple[str, ...] = ()
    """Names of the classes; empty for a number."""
    mean: float = 0.0
    std: float = 1.0

    @classmethod
    def of(cls, values: Sequence[Any], kind: Literal["auto"] | Kind, where: str) -> "Outcome":
        """Return the outcome for the values of a column.

        auto: a number, unless there are only two different values or any value is not a number.
        """
        numbers = as_numbers(values)
        names = sorted({as_class(value) for value in values})
        if len(names) < 2:
            raise LupiError(f"{where} is {names[0]!r} in every row; there is nothing to learn")
        if kind == "regression" and numbers is None:
            bad = next(value for value in values if as_numbers([value]) is None)
            raise LupiError(f"{where}: regression needs finite numbers, got {format_value(bad)}")
        if kind == "classification" or numbers is None or (kind == "auto" and len(names) == 2):
            return cls(tuple(names))
        return cls((), float(numbers.mean()), float(numbers.std()))

    @property
    def kind(self) -> Kind:
        """Kind of task."""
        return "classification" if self.classes else "regression"

    @property
    def output_kind(self) -> OutputKind:
        """Kind of output."""
        return "classes" if self.classes else "gaussian"

    @property
    def n_outputs(self) -> int:
        """Number of outputs of a network per row."""
        return len(self.classes) or 2

    def encode(self, values: Sequence[Any], where: str) -> NDArray[Any]:
        """Return the values of a column as targets of the network, (N,)."""
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

    def metric(self, name: str | None, weighted: bool = False) -> Metric:
        """Return the metric that a comparison is judged by; by default accuracy, or r2.

        Args:
            name: Name of a score, with the prefix `weighted_` for its weighted version.
            weighted: Whether held-out rows have weights; the default score is then weighted.
        """
        known = [*CLASS_SCORES] if self.classes else [*NUMBER_SCORES]
        known += [TWO_CLASS_SCORE] if len(self.classes) == 2 else []
        if weighted:
            known = [*(WEIGHTED + score for score in known), *known]
        name = name or known[0]
        if name.startswith(WEIGHTED) and not weighted:
            raise LupiError(f"metric: {name!r} needs weights of rows; name their column (weights)")
        if name not in known:
            raise LupiError(
                f"metric: {name!r} does not fit {self.kind} of this target; choose among "
                f"{', '.join(known)}"
            )
        prefix, plain = (WEIGHTED if name.startswith(WEIGHTED) else ""), name.removeprefix(WEIGHTED)
        chosen_by = f"{prefix}log_likelihood" if plain in COARSE else None
        return Metric(name, plain not in LOWER_IS_BETTER, chosen_by)

    def example_loss(self, output: Tensor, y: Tensor) -> Tensor:
        """Return the cross-entropy, or the negative log-likelihood, of each row, (B,)."""
        if self.classes:
            return F.cross_entropy(output, y, reduction="none")
        return gaussian_cross_entropy(output, y)

    def condense(self, output: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return the parts of outputs and targets that metrics need, (B, ...): here all."""
        return output, y

    def metrics(self, output: Tensor, y: Tensor, weights: Tensor | None = None) -> dict[str, float]:
        """Return all scores of a split; scores of numbers are in the unit of the target.

        If rows have weights, each score is returned twice: weighted (`weighted_`) and unweighted.
        """
        scores = self._scores(output, y, None)
        if weights is not None:
            weighted = self._scores(output, y, weights.double().numpy())
            scores |= {WEIGHTED + name: score for name, score in weighted.items()}
        return scores

    def _scores(
        self, output: Tensor, y: Tensor, weights: NDArray[np.float64] | None
    ) -> dict[str, float]:
        output = output.double()
        if self.classes:
            return score_classes(y.numpy(), output.numpy(), weights)
        mean, logvar = (part.numpy() for part in moments(output))
        number, unit = y.double().numpy(), self.std
        return score_numbers(unit * number, unit * mean, logvar + 2 * math.log(unit), weights)

    def trivial(self, train: Split, test: Split) -> dict[str, float]:
        """Return the scores of the distribution of the training targets, which ignores x."""
        y, target = (torch.cat([b.y for b in split.batches(4096)]) for split in (train, test))
        weights = [b.weights for b in test.batches(4096) if b.weights is not None]
        if self.classes:  # one row of each class more, so that no probability is 0
            output = (y.bincount(minlength=len(self.classes)) + 1.0).log()
        else:
            output = torch.stack([y.mean(), y.var(correction=0).clamp(min=1e-8).log()])
        output = output.expand(len(target), -1)
        return self.metrics(output, target, torch.cat(weights) if weights else None)

    def is_uninformative(self, output: Tensor) -> bool:
        """Return whether predictions do not change from row to row."""
        predicted = output.softmax(1) if self.classes else output[:, :1]
        return bool(predicted.std(0).max() < 1e-3)

    def describe(self, name: str) -> dict[str, Any]:
        """Return the meaning of a student's outputs as plain values."""
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
