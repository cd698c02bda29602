"""Pictures in memory, with a box each, and the batches made of them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from lupi.core import Batch
from lupi.data.regions import box_mask


@dataclass(frozen=True, slots=True)
class Pictures:
    """Pictures with labels and one box each."""

    x: NDArray[np.uint8]
    """(N, C, H, W)"""
    y: NDArray[np.int64]
    boxes: NDArray[np.int64]
    """(N, 4): x0, y0, x1, y1, end excluded"""


class PictureSplit:
    """Rows of pictures, kept as bytes; boxes become masks when a batch is made."""

    def __init__(
        self,
        x: Tensor,
        y: Tensor,
        boxes: Tensor | None = None,
        has_xstar: Tensor | None = None,
    ) -> None:
        self.x, self.y, self.boxes, self.has_xstar = x, y, boxes, has_xstar

    def __len__(self) -> int:
        return len(self.y)

    def batches(self, batch_size: int, shuffle: Generator | None = None) -> Iterator[Batch]:
        """Yield all rows: in order, or shuffled by the generator."""
        order = (
            torch.arange(len(self))
            if shuffle is None
            else torch.randperm(len(self), generator=shuffle)
        )
        for rows in torch.split(order, batch_size):
            yield self._batch(rows)

    def _batch(self, rows: Tensor) -> Batch:
        x, y = self.x[rows].float() / 255, self.y[rows]
        if self.boxes is None or self.has_xstar is None:
            return Batch(x, y)
        return Batch(x, y, box_mask(self.boxes[rows], *x.shape[2:]), self.has_xstar[rows])
