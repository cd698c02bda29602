"""Rows in splits and batches, which a method is given, and losses of rows, which it returns."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from torch import Generator, Tensor

from lupi.errors import LupiError

Metrics = Callable[[Tensor, Tensor, Tensor | None], dict[str, float]]
"""From outputs, targets and weights of rows to their scores."""
Inputs = Any
"""Input of a network: a tensor (B, ...), or a named tuple of tensors with B rows each."""


class Batch(NamedTuple):
    """Rows of one split. Validation and test rows have no x*: `xstar` is None."""

    x: Inputs
    y: Tensor
    xstar: Tensor | None = None
    has_xstar: Tensor | None = None
    """(B,) bool, True where the row has x*; never None if `xstar` is given."""
    n_targets: float | None = None
    """Number of targets in the batch if rows have several, such as words; None: one each."""
    row: Tensor | None = None
    """(B,) indices of the rows in the split, the same in every epoch; None if not known."""
    weights: Tensor | None = None
    """(B,) weights of the rows: in the loss of training rows (with mean 1 over the training set),
    or in the metrics of other rows. None: all count the same."""

    def privileged(self) -> tuple[Tensor, Tensor]:
        """Return x* (zero for rows without it) and which rows (B,) have it.

        A row of x* that is not finite counts as missing.
        """
        if self.xstar is None or self.has_xstar is None:
            raise LupiError("the method trains on rows with x*; this split carries none")
        has = self.has_xstar & finite_rows(self.xstar)
        if self.xstar.is_floating_point() and has.all():
            return self.xstar, has
        return self.xstar.where(over_rows(has, self.xstar), 0.0), has

    def select(self, rows: Tensor | slice) -> "Batch":
        """Return some rows: a slice, a mask (B,) or indices."""
        x = self.x
        if isinstance(x, tuple):
            make = getattr(x, "_make", tuple)  # of a named tuple
            x = make(part[rows] for part in x)
        else:
            x = x[rows]
        given = {name: getattr(self, name) for name in ("xstar", "has_xstar", "row", "weights")}
        chosen = {name: values[rows] for name, values in given.items() if values is not None}
        return self._replace(x=x, y=self.y[rows], **chosen)


def finite_rows(values: Tensor) -> Tensor:
    """Return which rows (B,) of values (B, ...) have no NaN and nothing infinite."""
    return (values * 0).flatten(1).sum(1) == 0  # what is not finite times 0 is NaN


def over_rows(values: Tensor, like: Tensor) -> Tensor:
    """Reshape values of rows (B,) so that they broadcast to `like` (B, ...)."""
    return values.view(-1, *[1] * (like.dim() - 1))


class Split(Protocol):
    """Some rows of a dataset."""

    def __len__(self) -> int: ...

    def batches(self, batch_size: int, shuffle: Generator | None = None) -> Iterator[Batch]:
        """Yield all rows in batches: in order, or shuffled (and augmented) by a generator."""
        ...


@runtime_checkable
class SortableSplit(Split, Protocol):
    """Rows that take less time in an order of their own, such as sentences by length."""

    def sort(self) -> tuple[Split, Tensor]:
        """Return the rows in that order, and for each row of this split its place there (N,)."""
        ...


@dataclass(frozen=True, slots=True)
class Splits:
    """Training rows (with x*), validation rows and test rows (without)."""

    train: Split
    val: Split
    test: Split
    also: Mapping[str, Split] = field(default_factory=dict)
    """Other versions of the test rows that are scored, too, such as ten crops of each image."""
    subgroups: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    """Test rows (N,) of each subgroup, which is scored by itself, too."""

    def score_test(
        self, metrics: Metrics, output: Tensor, y: Tensor, weights: Tensor | None
    ) -> dict[str, dict[str, float]]:
        """Return the scores of the `test` rows, and of each subgroup as `test/NAME`."""
        scores = {"test": metrics(output, y, weights)}
        for name, rows in self.subgroups.items():
            its_weights = None if weights is None else weights[rows]
            scores[f"test/{name}"] = metrics(output[rows], y[rows], its_weights)
        return scores


class RowLoss(NamedTuple):
    """A loss for each row. Training minimises its mean, times `weight`."""

    values: Tensor
    """(n, ...), one or more values for each row; or their mean (), as PyTorch's losses return."""
    weight: float = 1.0
    only_xstar: bool = False
    """Whether the values are for rows with x* only; by default for all rows."""


Losses = dict[str, RowLoss]
"""Losses by name; a method minimises their sum."""
