"""Batches that are cut: what concerns all of their rows, in passes that see some of them.

Several processes, and `accumulate`, cut each batch into parts. The losses of the parts add up to
the loss of the batch, noise is drawn for the batch and a part takes that of its rows, sums go over
the processes: so training reaches the same numbers, within rounding, however batches are cut.
Where nothing is cut, every function here is PyTorch's own.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, distributed


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """The rows of a batch that one pass of one process sees."""

    own: range
    together: range
    """The rows that all processes see at the same time, the own ones among them."""
    y: Tensor
    """Targets of the whole batch."""
    n_parts: int = 1
    n_processes: int = 1
    with_xstar: "Part | None" = None
    """The same part, where only rows with x* are counted."""

    @property
    def n_rows(self) -> int:
        """Rows of the whole batch."""
        return len(self.y)

    def among(self, chosen: Tensor) -> "Part":
        """Return this part of the rows (n_rows,) that are chosen, which are counted anew."""
        n_before = [0, *chosen.cumsum(0).tolist()]
        own, together = (
            range(n_before[rows.start], n_before[rows.stop]) for rows in (self.own, self.together)
        )
        return replace(self, own=own, together=together, y=self.y[chosen])


def cut(y: Tensor, n_passes: int, n_processes: int = 1, rank: int = 0) -> list[Part]:
    """Return the parts of a batch with targets y that a process has to pass, `n_passes` at most.

    The rows of a pass do not depend on how many processes share them, so neither do the
    statistics of batch norms.
    """
    passes = [rows for rows in _blocks(range(len(y)), n_passes) if rows]
    n_parts = len(passes) * n_processes
    return [
        Part(_blocks(rows, n_processes)[rank], rows, y, n_parts, n_processes) for rows in passes
    ]


def _blocks(rows: range, n: int) -> list[range]:
    """Cut rows into n blocks that differ by one row at most; some may be empty."""
    edges = (len(rows) * i // n for i in range(n + 1))
    return [rows[start:end] for start, end in pairwise(edges)]


_now: Part | None = None
"""What the passes see; a plain variable, which torch.compile can look at."""


@contextlib.contextmanager
def seeing(part: Part | None) -> Iterator[None]:
    """Let the passes inside the block be those of a part of a batch."""
    global _now
    before, _now = _now, part
    try:
        yield
    finally:
        _now = before


@contextlib.contextmanager
def with_xstar() -> Iterator[None]:
    """Say that what is inside the block concerns the rows with x* alone."""
    with seeing(_now and _now.with_xstar):
        yield


def any_xstar(has: Tensor) -> bool:
    """Tell whether any row of the batch has x*, where `has` (n,) is about those of this pass.

    All parts of a batch have to go the same way: they draw as much, and wait for each other.
    """
    if _now is None or _now.with_xstar is None:
        return bool(has.any())
    return _now.with_xstar.n_rows > 0


def count(n: int) -> int:
    """Return how many rows the batch has, where this pass sees `n` of them."""
    return n if _now is None else _now.n_rows


def targets(y: Tensor) -> Tensor:
    """Return the targets of the batch, where this pass sees `y`."""
    return y if _now is None else _now.y


def mean(values: Tensor) -> Tensor:
    """Return the mean of values (n, ...) over rows, 0 of none: what this pass adds to it.

    Rows may be repeated (several draws of noise for each).
    """
    return weigh(values.mean()) if len(values) else values.sum()


def weigh(mean: Tensor) -> Tensor:
    """Return what a mean over the rows of this pass adds to that of the batch."""
    if _now is None:
        return mean
    if not _now.own:
        return mean.nan_to_num()  # of no rows: 0, with a graph, as others wait for its gradients
    return mean * (len(_now.own) / _now.n_rows)


def total(values: Tensor) -> Tensor:
    """Return the sum over the processes, whose gradient goes back to all of them."""
    if _now is None or _now.n_processes == 1:
        return values
    result: Tensor = _Total.apply(values)  # type: ignore[no-untyped-call]
    return result


def norm(values: Tensor) -> Tensor:
    """Return the length of values (n, ...), as one vector, of the rows of all processes."""
    if _now is None:
        length: Tensor = torch.linalg.vector_norm(values)
        return length
    # clamped as the gradient of a square root at 0 is infinite
    return total(values.square().sum()).clamp(min=1e-30).sqrt()


def share(value: Tensor) -> Tensor:
    """Return what a part adds of a loss that every part has: one that is no mean over rows."""
    return value if _now is None else value / _now.n_parts


def gather(values: Tensor) -> tuple[Tensor, int]:
    """Return values (N, ...) of the rows of all processes, and where the own ones (n, ...) begin.

    No gradient goes back.
    """
    if _now is None or _now.n_processes == 1:
        return values, 0
    first = _now.own.start - _now.together.start
    every = values.new_zeros(len(_now.together), *values.shape[1:])
    every[first : first + len(values)] = values.detach()
    distributed.all_reduce(every)
    return every, first


def draw(chance: Callable[[Tensor], Tensor], like: Tensor) -> Tensor:
    """Return chance(like), such as torch.randn_like, for the rows (n, ...) of `like`.

    It is drawn for the whole batch, so that a row gets the same however the batch is cut, and
    all processes draw as much.
    """
    if _now is None:
        return chance(like)
    # Where rows are repeated, one copy of all rows follows another.
    n_copies = len(like) // len(_now.own) if _now.own else 1
    shape = (n_copies * _now.n_rows, *like.shape[1:])
    # Numbers are drawn in the order of memory.
    order = like.dim_order()
    whole = chance(torch.empty_permuted(shape, order, dtype=like.dtype, device=like.device))
    own: Tensor = whole.unflatten(0, (n_copies, _now.n_rows))[:, _now.own.start : _now.own.stop]
    return own.flatten(0, 1).clone()  # lets go of the other rows


class _Total(torch.autograd.Function):
    """The sum over processes. What a process adds reaches the losses of all of them."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        summed = values.clone()
        distributed.all_reduce(summed)
        return summed

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        summed: Tensor = _Total.apply(gradients[0])  # type: ignore[no-untyped-call]
        return summed  # with a graph of its own, for gradients of gradients
