"""Rows of vectors, and the batches made of them."""

from collections.abc import Iterator

import torch
from torch import Generator

from lupi.core import Batch


class VectorSplit:
    """Rows in memory: x (N, F), y (N,), perhaps x* (N, D) with the rows (N,) that have it."""

    def __init__(self, rows: Batch) -> None:
        self.rows = rows._replace(row=torch.arange(len(rows.y)))

    def __len__(self) -> int:
        return len(self.rows.y)

    def batches(self, batch_size: int, shuffle: Generator | None = None) -> Iterator[Batch]:
        """Yield all rows: in order, or shuffled by the generator."""
        rows, n = self.rows, len(self)
        if shuffle is not None:
            rows = rows.select(torch.randperm(n, generator=shuffle))
        for start in range(0, n, batch_size):
            yield rows.select(slice(start, start + batch_size))
