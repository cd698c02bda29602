"""A task over rows in memory, for estimators: training and validation rows are given."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor, nn

from lupi.core import (
    Bools,
    Outcome,
    Places,
    RowNumbers,
    Rows,
    RunRows,
    Shown,
    Split,
    Task,
    XstarKind,
)
from lupi.loaders.division import GivenParts
from lupi.records import Metric
from lupi.settings import Settings
from lupi.subsets import Part


def split_task(
    rows: "GivenRows", xstar_kind: XstarKind = "vector", places: Places | None = None
) -> Task:
    """Return a task with given training and validation rows, ready to train."""
    n = len(rows.train)
    division = GivenParts(
        {"train": n, "val": len(rows.val), "test": len(rows.val)},
        lambda seed: np.zeros(n, dtype=np.int64),
    )
    metric, design = Metric("log_likelihood"), division.design
    task = Task(rows, division, design, rows.outcome, metric, Settings(), xstar_kind, places)
    return task.for_run(n, 0)


class LogLikelihood(Outcome):
    """Classes or numbers, scored by what chooses the best epoch; scikit-learn does the rest."""

    __slots__ = ()

    def metrics(self, output: Tensor, y: Tensor, weights: Any = None) -> dict[str, float]:
        """Return the mean log-likelihood."""
        return {"log_likelihood": -self.example_loss(output, y).mean().item()}

    def is_uninformative(self, output: Tensor) -> bool:
        """Accept the same output for every row: there may be nothing to learn."""
        return False


@dataclass(eq=False)
class GivenRows(Rows, RunRows):
    """Rows that are used as they are: nothing is fitted."""

    train: Split
    """Rows with x*; y is a class, or a standardised number."""
    val: Split
    n_classes: int | None
    """None for regression."""
    build: Callable[[int], nn.Module]
    """The number of outputs to a new network."""
    two_rows: Tensor
    """Two rows of x."""
    xstar_dim: int

    def __post_init__(self) -> None:
        self.outcome = LogLikelihood(tuple(map(str, range(self.n_classes or 0))))

    def fit(self, parts: Mapping[Part, RowNumbers], seed: int, network: Any) -> "GivenRows":
        """Return the rows themselves."""
        return self

    def facts(self) -> tuple[()]:
        """Return nothing: the caller knows the rows."""
        return ()

    def has_xstar(self, part: Part) -> Bools:
        """Return that x* is shown as it was given."""
        return np.ones(len(self.train), dtype=np.bool_)

    def split(self, part: Part, shown: Shown | None = None) -> Split:
        """Return the given rows."""
        return self.train if part == "train" else self.val

    def network(self) -> nn.Module:
        """Build the student, freshly initialised."""
        return self.build(self.outcome.n_outputs)

    def example(self) -> Tensor:
        """Return two rows."""
        return self.two_rows
