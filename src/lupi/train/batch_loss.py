"""The loss of a batch, from a method's losses of rows.

A batch may be divided between processes and between passes of gradient accumulation. Each part
contributes its share of the mean over the whole batch, so gradients add up to those of the batch.
"""

from typing import NamedTuple

from torch import Tensor, nn

from lupi.core import Batch, Losses, Method, RowLoss
from lupi.core.batch import over_rows
from lupi.errors import LupiError


class Part(NamedTuple):
    """Some rows of a batch, and their share of it."""

    batch: Batch
    share: float = 1.0
    """Fraction of the rows of the whole batch."""
    xstar_share: float = 1.0
    """Fraction of those of its rows that have x*."""


def cut(batch: Batch, n_passes: int = 1, n_processes: int = 1, rank: int = 0) -> list[Part]:
    """Return the parts of a batch that a process passes: `n_passes` at most.

    Each pass takes a block of rows, and each process a block of those. A process without a row
    passes the first one with a share of 0, because the others wait for its gradients.
    """
    if n_passes == n_processes == 1:
        return [Part(batch)]
    n = len(batch.y)
    has = None if batch.xstar is None else batch.privileged()[1]
    n_passes = min(n_passes, n)
    edges = [n * i // (n_passes * n_processes) for i in range(n_passes * n_processes + 1)]
    parts = []
    for i in range(rank, n_passes * n_processes, n_processes):
        rows = slice(edges[i], edges[i + 1])
        share = (rows.stop - rows.start) / n
        xstar_share = 1.0 if has is None else (has[rows].sum() / has.sum().clamp(min=1)).item()
        part = batch.select(rows if share else slice(1))
        if batch.n_targets is not None:
            part = part._replace(n_targets=batch.n_targets * len(part.y) / n)
        parts.append(Part(part, share, xstar_share))
    return parts


class Reduced(NamedTuple):
    """What a part contributes to the loss of its batch."""

    total: Tensor
    parts: dict[str, Tensor]
    """Each loss by name, detached; their sum is the total."""


class TrainingLoss(nn.Module):
    """The module that training calls: the losses of a method on a part of a batch, reduced."""

    def __init__(self, method: Method) -> None:
        super().__init__()
        self.method = method

    def forward(self, part: Part) -> Reduced:
        """Return the reduced losses."""
        total, losses = reduce(self.method.loss(part.batch), part)
        if not total.requires_grad:  # no row has x*, but other processes wait for gradients
            learning = (weight for weight in self.method.parameters() if weight.requires_grad)
            total = total + 0 * next(learning).sum()
        return Reduced(total, losses)


def reduce(losses: Losses, part: Part) -> Reduced:
    """Return the weighted sum of all losses, each averaged over the rows it is about."""
    means = {name: _mean(name, loss, part) for name, loss in losses.items()}
    first, *others = means.values()
    return Reduced(sum(others, first), {name: mean.detach() for name, mean in means.items()})


def _mean(name: str, loss: RowLoss, part: Part) -> Tensor:
    values, batch = loss.values, part.batch
    if batch.weights is not None:
        if not values.dim():
            raise LupiError(
                f"the loss {name!r} is a mean over rows, so rows can't have weights: return a "
                "value for each row, or train without weights"
            )
        weights = batch.weights[batch.privileged()[1]] if loss.only_xstar else batch.weights
        values = values * over_rows(weights, values).to(values.dtype)
    if values.dim():
        values = values.mean() if len(values) else values.sum()
    factor = loss.weight * (part.xstar_share if loss.only_xstar else part.share)
    return values if factor == 1 else factor * values
