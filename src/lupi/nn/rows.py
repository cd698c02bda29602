"""Batches that are cut: what concerns all of their rows, in passes that see some of them.

Several processes, and `accumulate`, cut each batch into parts. The losses of the parts add up to
the loss of the batch, noise is drawn for the batch and a part takes that of its rows, sums go over
the processes: so training reaches the same numbers, within rounding, however batches are cut.
Where nothing is cut, every function here is PyTorch's own.
"""

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, distributed


@dataclass(frozen=True, slots=True)
class Part:
    """The rows of a batch that one pass of one process sees."""

    own: range
    together: range
    """The rows that all processes see at the same time, the own ones among them."""
    n_rows: int
    """Of the whole batch."""
    n_parts: int = 1
    n_processes: int = 1
    with_xstar: "Part | None" = None
    """The same part, where only rows with x* are counted."""

    def among(self, chosen: Tensor) -> "Part":
        """Return this part of the rows (n_rows,) that are chosen, which are counted anew."""
        n_before = [0, *chosen.cumsum(0).tolist()]
        own, together = (
            range(n_before[rows.start], n_before[rows.stop]) for rows in (self.own, self.together)
        )
        return replace(self, own=own, together=together, n_rows=n_before[-1])


def cut(n_rows: int, n_passes: int, n_processes: int = 1, rank: int = 0) -> list[Part]:
    """Return the parts of a batch that a process has to pass, at most `n_passes`.

    The rows of a pass do not depend on how many processes share them, so neither do the
    statistics of batch norms.
    """
    passes = [rows for rows in _blocks(range(n_rows), n_passes) if rows]
    n_parts = len(passes) * n_processes
    return [
        Part(_blocks(rows, n_processes)[rank], rows, n_rows, n_parts, n_processes)
        for rows in passes
    ]


def _blocks(rows: range, n: int) -> list[range]:
    """Cut rows into n blocks that differ by one row at most; some may be empty."""
    edges = (len(rows) * i // n for i in range(n + 1))
    return [rows[start:end] for start, end in pairwise(edges)]


_now: ContextVar[Part | None] = ContextVar("part", default=None)


@contextlib.contextmanager
def seeing(part: Part | None) -> Iterator[None]:
    """Let the passes inside the block be those of a part of a batch."""
    token = _now.set(part)
    try:
        yield
    finally:
        _now.reset(token)


@contextlib.contextmanager
def with_xstar() -> Iterator[None]:
    """Say that what is inside the block concerns the rows with x* alone."""
    part = _now.get()
    with seeing(part and part.with_xstar):
        yield


def any_xstar(has: Tensor) -> bool:
    """Tell whether any row of the batch has x*, where `has` (n,) is about those of this pass.

    All parts of a batch have to go the same way: they draw as much, and wait for each other.
    """
    part = _now.get()
    if part is None or part.with_xstar is None:
        return bool(has.any())
    return part.with_xstar.n_rows > 0


def count(n: int) -> int:
    """Return how many rows the batch has, where this pass sees `n` of them."""
    part = _now.get()
    return n if part is None else part.n_rows


def mean(values: Tensor) -> Tensor:
    """Return the mean of values (n, ...) over rows, 0 of none: what this pass adds to it.

    Rows may be repeated (several draws of noise for each).
    """
    return weigh(values.mean()) if len(values) else values.sum()


def weigh(mean: Tensor) -> Tensor:
    """Return what a mean over the rows of this pass adds to that of the batch."""
    part = _now.get()
    return mean if part is None else mean * (len(part.own) / max(part.n_rows, 1))


def total(values: Tensor) -> Tensor:
    """Return the sum over the processes, whose gradient goes back to all of them."""
    part = _now.get()
    if part is None or part.n_processes == 1:
        return values
    result: Tensor = _Total.apply(values)
    return result


def norm(values: Tensor) -> Tensor:
    """Return the length of values (n, ...), as one vector, of the rows of all processes."""
    if _now.get() is None:
        length: Tensor = torch.linalg.vector_norm(values)
        return length
    # clamped as the gradient of a square root at 0 is infinite
    return total(values.square().sum()).clamp(min=1e-30).sqrt()


def share(value: Tensor) -> Tensor:
    """Return what a part adds of a loss that every part has: one that is no mean over rows."""
    part = _now.get()
    return value if part is None else value / part.n_parts


def gather(values: Tensor) -> tuple[Tensor, int]:
    """Return values (N, ...) of the rows of all processes, and where the own ones (n, ...) begin.

    No gradient goes back.
    """
    part = _now.get()
    if part is None or part.n_processes == 1:
        return values, 0
    first = part.own.start - part.together.start
    every = values.new_zeros(len(part.together), *values.shape[1:])
    every[first : first + len(values)] = values.detach()
    distributed.all_reduce(every)
    return every, first


def draw(chance: Callable[[Tensor], Tensor], like: Tensor) -> Tensor:
    """Return chance(like), such as torch.randn_like, for the rows (n, ...) of `like`.

    It is drawn for the whole batch, so that a row gets the same however the batch is cut, and
    all processes draw as much.
    """
    part = _now.get()
    if part is None:
        return chance(like)
    # Where rows are repeated, one copy of all rows follows another.
    n_copies = len(like) // len(part.own) if part.own else 1
    shape = (n_copies * part.n_rows, *like.shape[1:])
    whole = chance(torch.empty(shape, dtype=like.dtype, device=like.device, **_order(like)))
    own = whole.unflatten(0, (n_copies, part.n_rows))[:, part.own.start : part.own.stop]
    return own.flatten(0, 1)


def _order(like: Tensor) -> dict[str, Any]:
    """Return how memory is laid out, as numbers are drawn in the order of memory."""
    is_last = like.dim() == 4 and like.is_contiguous(memory_format=torch.channels_last)
    return {"memory_format": torch.channels_last} if is_last and not like.is_contiguous() else {}


class _Total(torch.autograd.Function):
    """The sum over processes. What a process adds reaches the losses of all of them."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        summed = values.clone()
        distributed.all_reduce(summed)
        return summed

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        summed = gradients[0].clone()
        distributed.all_reduce(summed)
        return summed
