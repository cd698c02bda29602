"""The losses of a pass, reduced to what training minimises."""

from typing import NamedTuple

from torch import Tensor, nn

from lupi.core import Batch, Losses, Method, RowLoss
from lupi.errors import LupiError


class Reduced(NamedTuple):
    """What the rows of a pass add to the loss of their batch."""

    total: Tensor
    parts: dict[str, Tensor]
    """Each loss by its name, detached; they add up to the total."""


class TrainingLoss(nn.Module):
    """What is called in training: a method's losses on a batch, reduced."""

    def __init__(self, method: Method) -> None:
        super().__init__()
        self.method = method

    def forward(self, batch: Batch) -> Reduced:
        """Pass a batch."""
        return reduce(self.method(batch), batch)


def reduce(losses: Losses, batch: Batch) -> Reduced:
    """Take the mean of each loss over the rows it concerns, and add them up by their weights."""
    parts = {name: _mean(name, loss, batch) for name, loss in losses.rows.items()}
    parts |= losses.batch
    first, *others = parts.values()
    total = first
    for part in others:
        total = total + part
    if not total.requires_grad:  # no row of the batch has x*
        total = total.clone().requires_grad_()
    return Reduced(total, {name: part.detach() for name, part in parts.items()})


def _mean(name: str, loss: RowLoss, batch: Batch) -> Tensor:
    values = loss.values if batch.weights is None else _weighted(name, loss, batch, batch.weights)
    if loss.n_targets is not None:
        values = values * batch.n_rows / loss.n_targets
    if values.dim():
        values = values.mean() if len(values) else values.sum()
    mean = batch.whole.share_of_mean(values, loss.only_xstar)
    return mean if loss.weight == 1 else loss.weight * mean


def _weighted(name: str, loss: RowLoss, batch: Batch, weights: Tensor) -> Tensor:
    """Return the values times the weights of their rows; several draws follow one another."""
    values = loss.values
    if not values.dim():
        raise LupiError(
            f"the loss {name!r} is a mean over rows, so rows can't have weights: return a value "
            "for each row, or train without weights"
        )
    if loss.only_xstar:
        weights = weights[batch.privileged()[1]]
    n_copies = len(values) // max(len(weights), 1)
    shape = (-1, *[1] * (values.dim() - 1))
    return values * weights.repeat(n_copies).view(shape).to(values.dtype)
