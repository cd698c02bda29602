"""Batches, which a method is given, and the losses of their rows, which it returns."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from torch import Tensor

from lupi.core.whole_batch import WHOLE, WholeBatch
from lupi.errors import LupiError

Inputs = Any
"""Input of a network: a tensor (B, ...), or a named tuple of tensors with B rows each."""


class Batch(NamedTuple):
    """Rows of one split. Validation and test rows have no x*: `xstar` is None."""

    x: Inputs
    y: Tensor
    xstar: Tensor | None = None
    has_xstar: Tensor | None = None
    """(B,) bool, True where the row has x*; never None if `xstar` is given."""
    n_targets: int | None = None
    """Number of targets in the whole batch if rows have several, such as words; None: one each."""
    row: Tensor | None = None
    """(B,) indices of the rows in the split, the same in every epoch; None if not known."""
    weights: Tensor | None = None
    """(B,) weights of the rows: in the loss of training rows (with mean 1 over the training set),
    or in the metrics of other rows. None: all count the same."""
    whole: WholeBatch = WHOLE
    """The batch that these rows are all or a part of: see `lupi.core.whole_batch`."""

    @property
    def n_rows(self) -> int:
        """Number of rows of the whole batch."""
        return self.whole.n_rows(len(self.y))

    def privileged(self) -> tuple[Tensor, Tensor]:
        """Return x* (zero for rows without it) and which rows (B,) have it.

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
    """A loss for each row. Training minimises its mean over the batch, times `weight`."""

    values: Tensor
    """(n, ...), one or more values per row; or their mean (), as PyTorch's losses return."""
    weight: float = 1.0
    only_xstar: bool = False
    """Whether the values are for rows with x* only; by default for all rows."""
    n_targets: int | None = None
    """Number of targets in the whole batch if a value is a sum over targets, such as words. The
    mean is then over targets."""


class Losses(NamedTuple):
    """Losses by name; a method minimises their sum. `train/` reduces them."""

    rows: Mapping[str, RowLoss]
    batch: Mapping[str, Tensor] = {}
    """Losses that are not means over rows, such as the norm of all values of a batch: what the
    rows of this pass contribute to them (see `Batch.whole`)."""
