"""The batch that a training pass belongs to, of which the pass may see only some rows.

Several processes, and gradient accumulation, cut each batch into parts. What a method computes
per row is not affected: it returns a loss per row, and `train/` takes the means. The rest is here:
noise is drawn for the whole batch, of which each part takes its rows, and sums are taken over all
processes. So training reaches the same numbers, within rounding, however batches are cut.
"""

import contextlib
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor, distributed


class WholeBatch:
    """A batch that a pass sees as a whole: each method is the plain operation."""

    def n_rows(self, n_seen: int) -> int:
        """Return the number of rows of the batch, of which this pass sees `n_seen`."""
        return n_seen

    def any_xstar(self, has: Tensor) -> bool:
        """Return whether any row of the batch has x*; `has` (n,) is about the rows of this pass.

        All parts of a batch must run the same operations, as they draw the same random numbers and
        wait for each other. So branch on this, not on `has.any()`.
        """
        return bool(has.any())

    def every_row(self, has: Tensor) -> bool:
        """Tell whether all rows of the batch are known to have x*: what saves work, and no more.

        It is not known of a part of a batch, nor where a compiler asks.
        """
        return not torch.compiler.is_compiling() and bool(has.all())

    @contextlib.contextmanager
    def only_xstar(self) -> Iterator[None]:
        """Declare that tensors inside the block hold the rows with x* only."""
        yield

    def draw(self, random: Callable[[Tensor], Tensor], like: Tensor) -> Tensor:
        """Return random(like), such as torch.randn_like(like), for the rows (n, ...) of `like`."""
        return random(like)

    def gather(self, values: Tensor) -> tuple[Tensor, int]:
        """Return the values (N, ...) of all processes, and where its own (n, ...) start.

        Gradients do not flow back.
        """
        return values, 0

    def sum(self, values: Tensor) -> Tensor:
        """Return the sum of values over all processes; its gradient flows back to all of them."""
        return values

    def norm(self, values: Tensor) -> Tensor:
        """Return the norm of the values (n, ...) of the rows of all processes, as one vector."""
        length: Tensor = torch.linalg.vector_norm(values)
        return length

    def share(self, value: Tensor) -> Tensor:
        """Return the share of this pass in a value that every part of the batch has."""
        return value

    def share_of_mean(self, mean: Tensor, only_xstar: bool = False) -> Tensor:
        """Return the share of a mean over the rows of this pass in the mean over the batch."""
        return mean


WHOLE = WholeBatch()


class Rows(NamedTuple):
    """Some of the rows of a batch: all of them, or those with x*, counted from 0."""

    own: range
    """Rows that this process sees in this pass."""
    all_processes: range
    """Rows that all processes see in this pass, including `own`."""
    n: int
    """Number of rows in the batch."""

    def among(self, chosen: Tensor) -> "Rows":
        """Return the same part of the chosen rows (n,) only, counted from 0."""
        n_before = [0, *chosen.cumsum(0).tolist()]
        own, all_processes = (
            range(n_before[rows.start], n_before[rows.stop])
            for rows in (self.own, self.all_processes)
        )
        return Rows(own, all_processes, n_before[-1])


class CutBatch(WholeBatch):
    """A batch of which a pass sees a part.

    Args:
        rows: Rows that the pass sees.
        with_xstar: The same part of the rows with x*; None if the split has no x*.
        n_parts: Number of parts that the batch is cut into.
        n_processes: Number of processes that run a pass at the same time.
    """

    def __init__(
        self, rows: Rows, with_xstar: Rows | None = None, n_parts: int = 1, n_processes: int = 1
    ) -> None:
        self.rows, self.with_xstar = rows, with_xstar
        self.n_parts, self.n_processes = n_parts, n_processes
        self._seen = rows

    def n_rows(self, n_seen: int) -> int:
        """Return the number of rows of the batch."""
        return self._seen.n

    def any_xstar(self, has: Tensor) -> bool:
        """Return whether any row of the batch has x*."""
        return bool(has.any()) if self.with_xstar is None else self.with_xstar.n > 0

    def every_row(self, has: Tensor) -> bool:
        """Return False: other parts may have rows without x*, and all run the same operations."""
        return False

    @contextlib.contextmanager
    def only_xstar(self) -> Iterator[None]:
        """Declare that tensors inside the block hold the rows with x* only."""
        before, self._seen = self._seen, self.with_xstar or self._seen
        try:
            yield
        finally:
            self._seen = before

    def draw(self, random: Callable[[Tensor], Tensor], like: Tensor) -> Tensor:
        """Return random numbers for the rows of `like`, drawn for the whole batch.

        If rows are repeated, one copy of all rows follows another.
        """
        n, own = self._seen.n, self._seen.own
        n_copies = len(like) // len(own) if own else 1
        shape = (n_copies * n, *like.shape[1:])
        order = like.dim_order()  # numbers are drawn in the order of memory
        whole = random(torch.empty_permuted(shape, order, dtype=like.dtype, device=like.device))
        part: Tensor = whole.unflatten(0, (n_copies, n))[:, own.start : own.stop]
        return part.flatten(0, 1).clone()  # frees the other rows

    def gather(self, values: Tensor) -> tuple[Tensor, int]:
        """Return the values (N, ...) of all processes, and where its own (n, ...) start."""
        if self.n_processes == 1:
            return values, 0
        first = self._seen.own.start - self._seen.all_processes.start
        every = values.new_zeros(len(self._seen.all_processes), *values.shape[1:])
        every[first : first + len(values)] = values.detach()
        distributed.all_reduce(every)
        return every, first

    def sum(self, values: Tensor) -> Tensor:
        """Return the sum of values over all processes; its gradient flows back to all of them."""
        if self.n_processes == 1:
            return values
        result: Tensor = _Sum.apply(values)  # type: ignore[no-untyped-call]
        return result

    def norm(self, values: Tensor) -> Tensor:
        """Return the norm of the values (n, ...) of the rows of all processes, as one vector."""
        # clamped as the gradient of a square root at 0 is infinite
        return self.sum(values.square().sum()).clamp(min=1e-30).sqrt()

    def share(self, value: Tensor) -> Tensor:
        """Return the share of this pass in a value that every part of the batch has."""
        return value / self.n_parts

    def share_of_mean(self, mean: Tensor, only_xstar: bool = False) -> Tensor:
        """Return the share of a mean over the rows of this pass in the mean over the batch."""
        rows = self.with_xstar if only_xstar and self.with_xstar else self._seen
        if not rows.own:
            return mean.nan_to_num()  # of no rows: 0, with a graph, as others wait for gradients
        return mean * (len(rows.own) / rows.n)


def cut(
    n_rows: int, has: Tensor | None, n_passes: int, n_processes: int = 1, rank: int = 0
) -> list[CutBatch]:
    """Return the parts of a batch that a process passes: `n_passes` at most.

    The rows of a pass, and so the statistics of batch norms, do not depend on the number of
    processes that share it.

    Args:
        n_rows: Number of rows of the batch.
        has: (n_rows,) bool, True where a row has x*; None if the batch has no x*.
        n_passes: Number of passes of gradient accumulation.
        n_processes: Number of processes that share each pass.
        rank: Rank of this process.
    """
    passes = [rows for rows in _blocks(range(n_rows), n_passes) if rows]
    parts = [Rows(_blocks(rows, n_processes)[rank], rows, n_rows) for rows in passes]
    n_parts = len(passes) * n_processes
    return [
        CutBatch(rows, None if has is None else rows.among(has), n_parts, n_processes)
        for rows in parts
    ]


def _blocks(rows: range, n: int) -> list[range]:
    """Split rows into n blocks whose sizes differ by one at most; some may be empty."""
    edges = (len(rows) * i // n for i in range(n + 1))
    return [rows[start:end] for start, end in pairwise(edges)]


class _Sum(torch.autograd.Function):
    """Sum over processes. The contribution of each process is part of the losses of all."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        summed = values.clone()
        distributed.all_reduce(summed)
        return summed

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        summed: Tensor = _Sum.apply(gradients[0])  # type: ignore[no-untyped-call]
        return summed  # with a graph of its own, for gradients of gradients
