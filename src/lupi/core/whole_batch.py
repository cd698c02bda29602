"""The batch that a training pass belongs to, of which the pass may see some rows only.

Several processes, and gradient accumulation, cut each batch into parts. What a method computes
from rows alone is not affected: it returns a loss per row, and `train/` takes the means. The rest
is here: noise is drawn for the whole batch, of which a part takes its rows, and sums go over the
processes. So training reaches the same numbers, within rounding, however batches are cut.
"""

import contextlib
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor, distributed


class WholeBatch:
    """A batch that the pass sees whole: every method here is the plain operation."""

    def n_rows(self, n_seen: int) -> int:
        """Return how many rows the batch has, where this pass sees `n_seen` of them."""
        return n_seen

    def any_xstar(self, has: Tensor) -> bool:
        """Tell whether any row of the batch has x*, where `has` (n,) is about those of this pass.

        All parts of a batch have to run the same operations: they draw equally many random
        numbers, and wait for each other. So branch on this, not on `has.any()`.
        """
        return bool(has.any())

    def every_row(self, has: Tensor) -> bool:
        """Tell whether all rows of the batch are known to have x*: what saves work, and no more.

        It is not known of a part of a batch, nor where a compiler asks.
        """
        return not torch.compiler.is_compiling() and bool(has.all())

    @contextlib.contextmanager
    def only_xstar(self) -> Iterator[None]:
        """Declare that what is inside the block sees the rows with x* only."""
        yield

    def draw(self, chance: Callable[[Tensor], Tensor], like: Tensor) -> Tensor:
        """Return chance(like), such as torch.randn_like, for the rows (n, ...) of `like`."""
        return chance(like)

    def gather(self, values: Tensor) -> tuple[Tensor, int]:
        """Return the values (N, ...) of all processes, and where the own ones (n, ...) begin.

        No gradient goes back.
        """
        return values, 0

    def sum(self, values: Tensor) -> Tensor:
        """Return the sum of values over the processes, whose gradient goes back to all of them."""
        return values

    def norm(self, values: Tensor) -> Tensor:
        """Return the length of values (n, ...), as one vector, of the rows of all processes."""
        length: Tensor = torch.linalg.vector_norm(values)
        return length

    def share(self, value: Tensor) -> Tensor:
        """Return what a pass adds of a value that every part of the batch has."""
        return value

    def share_of_mean(self, mean: Tensor, only_xstar: bool = False) -> Tensor:
        """Return what a mean over the rows of this pass adds to the mean over the batch."""
        return mean


WHOLE = WholeBatch()


class Rows(NamedTuple):
    """Some of the rows of a batch: all of them, or those with x*, counted from 0."""

    own: range
    """Those that this process sees in this pass."""
    together: range
    """Those that all processes see at the same time, the own ones among them."""
    n: int
    """How many there are in the batch."""

    def among(self, chosen: Tensor) -> "Rows":
        """Return the same part of the rows (n,) that are chosen, which are counted anew."""
        n_before = [0, *chosen.cumsum(0).tolist()]
        own, together = (
            range(n_before[rows.start], n_before[rows.stop]) for rows in (self.own, self.together)
        )
        return Rows(own, together, n_before[-1])


class CutBatch(WholeBatch):
    """A batch of which this pass sees a part.

    Args:
        rows: which ones.
        with_xstar: the same part of the rows with x*; None: the split carries no x*.
        n_parts: how many parts the batch is cut into.
        n_processes: how many processes run a pass at the same time.
    """

    def __init__(
        self, rows: Rows, with_xstar: Rows | None = None, n_parts: int = 1, n_processes: int = 1
    ) -> None:
        self.rows, self.with_xstar = rows, with_xstar
        self.n_parts, self.n_processes = n_parts, n_processes
        self._seen = rows

    def n_rows(self, n_seen: int) -> int:
        """Return how many rows the batch has."""
        return self._seen.n

    def any_xstar(self, has: Tensor) -> bool:
        """Tell whether any row of the batch has x*."""
        return bool(has.any()) if self.with_xstar is None else self.with_xstar.n > 0

    def every_row(self, has: Tensor) -> bool:
        """Return False: other parts may have rows without x*, and all run the same operations."""
        return False

    @contextlib.contextmanager
    def only_xstar(self) -> Iterator[None]:
        """Declare that what is inside the block sees the rows with x* only."""
        before, self._seen = self._seen, self.with_xstar or self._seen
        try:
            yield
        finally:
            self._seen = before

    def draw(self, chance: Callable[[Tensor], Tensor], like: Tensor) -> Tensor:
        """Return chance(like) for the rows of `like`, drawn for the whole batch.

        Where rows are repeated, one copy of all rows follows another.
        """
        n, own = self._seen.n, self._seen.own
        n_copies = len(like) // len(own) if own else 1
        shape = (n_copies * n, *like.shape[1:])
        order = like.dim_order()  # numbers are drawn in the order of memory
        whole = chance(torch.empty_permuted(shape, order, dtype=like.dtype, device=like.device))
        part: Tensor = whole.unflatten(0, (n_copies, n))[:, own.start : own.stop]
        return part.flatten(0, 1).clone()  # frees the other rows

    def gather(self, values: Tensor) -> tuple[Tensor, int]:
        """Return the values (N, ...) of all processes, and where the own ones (n, ...) begin."""
        if self.n_processes == 1:
            return values, 0
        first = self._seen.own.start - self._seen.together.start
        every = values.new_zeros(len(self._seen.together), *values.shape[1:])
        every[first : first + len(values)] = values.detach()
        distributed.all_reduce(every)
        return every, first

    def sum(self, values: Tensor) -> Tensor:
        """Return the sum of values over the processes, whose gradient goes back to all of them."""
        if self.n_processes == 1:
            return values
        result: Tensor = _Sum.apply(values)  # type: ignore[no-untyped-call]
        return result

    def norm(self, values: Tensor) -> Tensor:
        """Return the length of values (n, ...), as one vector, of the rows of all processes."""
        # clamped as the gradient of a square root at 0 is infinite
        return self.sum(values.square().sum()).clamp(min=1e-30).sqrt()

    def share(self, value: Tensor) -> Tensor:
        """Return what a pass adds of a value that every part of the batch has."""
        return value / self.n_parts

    def share_of_mean(self, mean: Tensor, only_xstar: bool = False) -> Tensor:
        """Return what a mean over the rows of this pass adds to the mean over the batch."""
        rows = self.with_xstar if only_xstar and self.with_xstar else self._seen
        if not rows.own:
            return mean.nan_to_num()  # of no rows: 0, with a graph, as others wait for gradients
        return mean * (len(rows.own) / rows.n)


def cut(
    n_rows: int, has: Tensor | None, n_passes: int, n_processes: int = 1, rank: int = 0
) -> list[CutBatch]:
    """Return the parts of a batch that a process has to pass, `n_passes` at most.

    The rows of a pass do not depend on how many processes share them, so neither do the
    statistics of batch norms.

    Args:
        n_rows: of the batch.
        has: (n_rows,) bool, True where a row has x*; None: the batch carries none.
        n_passes: of gradient accumulation.
        n_processes: that share each pass.
        rank: of this process.
    """
    passes = [rows for rows in _blocks(range(n_rows), n_passes) if rows]
    parts = [Rows(_blocks(rows, n_processes)[rank], rows, n_rows) for rows in passes]
    n_parts = len(passes) * n_processes
    return [
        CutBatch(rows, None if has is None else rows.among(has), n_parts, n_processes)
        for rows in parts
    ]


def _blocks(rows: range, n: int) -> list[range]:
    """Cut rows into n blocks that differ by one row at most; some may be empty."""
    edges = (len(rows) * i // n for i in range(n + 1))
    return [rows[start:end] for start, end in pairwise(edges)]


class _Sum(torch.autograd.Function):
    """The sum over processes. What a process adds reaches the losses of all of them."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        summed = values.clone()
        distributed.all_reduce(summed)
        return summed

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        summed: Tensor = _Sum.apply(gradients[0])  # type: ignore[no-untyped-call]
        return summed  # with a graph of its own, for gradients of gradients
