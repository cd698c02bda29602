"""One training pass: the rows of a batch that a process sees, and their losses reduced to one."""

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from lupi.core import Batch, Losses, Method, RowLoss
from lupi.core.whole_batch import CutBatch, cut
from lupi.errors import LupiError
from lupi.nn.cut_layers import layers_of_the_whole_batch
from lupi.train.parallel.processes import Processes


class Reduced(NamedTuple):
    """What the rows of a pass contribute to the loss of their batch."""

    total: Tensor
    parts: dict[str, Tensor]
    """Each loss by name, detached; their sum is the total."""


class TrainingLoss(nn.Module):
    """The module that training calls: the losses of a method on a batch, reduced."""

    def __init__(self, method: Method) -> None:
        super().__init__()
        self.method = method

    def forward(self, batch: Batch) -> Reduced:
        """Return the reduced losses of a batch."""
        return reduce(self.method.loss(batch), batch)


def reduce(losses: Losses, batch: Batch) -> Reduced:
    """Return the weighted sum of all losses, each averaged over the rows it is about."""
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
    """Return the values times the weights of their rows, repeated for each draw of noise."""
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


def run_passes(
    processes: Processes, method: Method, module: Any, batch: Batch, accumulate: int
) -> Iterator[Reduced]:
    """Compute the gradients of the rows that this process has of a batch; yield their losses.

    Args:
        processes: Processes that share the batch.
        method: Method whose weights get gradients.
        module: Its `TrainingLoss`, as `processes` wrapped it.
        batch: The whole batch.
        accumulate: Number of passes to cut the rows into.
    """
    parts = parts_of(batch, accumulate, processes.count, processes.rank)
    for part in parts[:-1]:
        # All passes draw the noise of the whole batch, and the last one leaves its state.
        devices = [processes.device] if processes.device.type == "cuda" else []
        with torch.random.fork_rng(devices), processes.no_sync(module):
            losses = _pass(processes, method, module, part)
        yield losses
    yield _pass(processes, method, module, parts[-1])


def _pass(processes: Processes, method: Method, module: Any, part: Batch) -> Reduced:
    with training_pass(method, part):
        losses: Reduced = module(processes.as_input(part))
    # Gradients add up, where data-parallel training would take their mean.
    processes.backward(losses.total * processes.count if processes.count > 1 else losses.total)
    return losses


def parts_of(batch: Batch, n_passes: int, n_processes: int = 1, rank: int = 0) -> list[Batch]:
    """Return the parts of a batch that a process passes: `n_passes` at most."""
    if n_passes == n_processes == 1:
        return [batch]
    has = None if batch.xstar is None else batch.privileged()[1]
    parts = cut(len(batch.y), has, n_passes, n_processes, rank)
    return [
        batch.select(slice(part.rows.own.start, part.rows.own.stop))._replace(whole=part)
        for part in parts
    ]


@contextlib.contextmanager
def training_pass(method: nn.Module, part: Batch) -> Iterator[None]:
    """Make layers inside the block behave as if the pass saw the whole batch."""
    if not isinstance(part.whole, CutBatch):
        yield
        return
    with layers_of_the_whole_batch(method, part.whole):
        yield
