"""Batches, and the losses of their rows: what a method is given, and what it returns."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from torch import Tensor

from lupi.core.whole_batch import WHOLE, WholeBatch
from lupi.errors import LupiError

Inputs = Any
"""What a network sees: a tensor (B, ...), or a named tuple of tensors with B rows each."""


class Batch(NamedTuple):
    """Rows of one split. Validation and test rows carry no x*: `xstar` is None there."""

    x: Inputs
    y: Tensor
    xstar: Tensor | None = None
    has_xstar: Tensor | None = None
    """(B,) bool, True where the row carries x*; never None where `xstar` is given."""
    n_targets: int | None = None
    """Targets in the whole batch where rows have several each, such as words; None: one each."""
    row: Tensor | None = None
    """(B,) which rows of the split they are, in every epoch; None where the split can't tell."""
    weights: Tensor | None = None
    """(B,), how much each row counts: in the loss of training rows, where their mean over the
    training set is 1, or in the metrics of other rows. None: all the same."""
    whole: WholeBatch = WHOLE
    """The batch that these rows are all of, or a part of: see `lupi.core.whole_batch`."""

    @property
    def n_rows(self) -> int:
        """Rows of the whole batch."""
        return self.whole.n_rows(len(self.y))

    def privileged(self) -> tuple[Tensor, Tensor]:
        """Return x*, and which rows (B,) have it; other rows of x* are zero.

        A row of x* that is not finite counts as missing.
        """
        if self.xstar is None or self.has_xstar is None:
            raise LupiError("the method trains on rows with x*; this split carries none")
        has = self.has_xstar & finite_rows(self.xstar)
        if self.xstar.is_floating_point() and has.all():
            return self.xstar, has
        return self.xstar.where(has.view(-1, *[1] * (self.xstar.dim() - 1)), 0.0), has

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


class RowLoss(NamedTuple):
    """A loss of each row. Training minimises its mean over the batch, times `weight`."""

    values: Tensor
    """(n, ...), a value or several for each row; or their mean (), as PyTorch's losses return."""
    weight: float = 1.0
    only_xstar: bool = False
    """Whether the rows are those with x*; by default all."""
    n_targets: int | None = None
    """Where a value is a sum over targets, such as words: how many the whole batch has. The mean
    is then over targets."""


class Losses(NamedTuple):
    """What a method minimises: the sum of these, by name. `train/` reduces them."""

    rows: Mapping[str, RowLoss]
    batch: Mapping[str, Tensor] = {}
    """Losses that are no mean over rows, such as the length of all values of a batch as one
    vector: what the rows of this pass add to them (`Batch.whole`)."""
