"""Pictures, in memory or memory-mapped, and the batches made of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from lupi.core import Batch, Control
from lupi.data.privileged import Regions, controlled_boxes, controlled_masks
from lupi.data.windows import Cropping


@dataclass(frozen=True, slots=True)
class Pictures:
    """Pictures with labels, and boxes or masks for some or all of them."""

    x: NDArray[np.uint8]
    """(N, C, S, S)"""
    y: NDArray[np.int64]
    boxes: NDArray[Any]
    """(N, 4) or (N, K, 4): x0, y0, x1, y1, end excluded; some may be empty"""
    masks: NDArray[np.uint8] | None = None
    """(N, S, S): 1 on the object; if given, boxes are not used"""
    has_region: NDArray[np.bool_] | None = None
    """(N,): which pictures have boxes or a mask; None: all"""

    @property
    def has_regions(self) -> bool:
        """Whether any picture has one."""
        return self.has_region is None or bool(self.has_region.any())

    def regions(
        self, rows: NDArray[np.int64], control: Control, seed: int
    ) -> tuple[Regions, NDArray[np.bool_]]:
        """Return the x* of some rows under a control, and which of them have any."""
        has = np.ones(len(rows), np.bool_) if self.has_region is None else self.has_region[rows]
        if self.masks is not None:
            return controlled_masks(self.masks, rows, has, control, seed), has
        return controlled_boxes(self.boxes[rows], has, self.x.shape[-1], control, seed), has


class PictureSplit:
    """Rows of pictures, kept as bytes; windows and masks are made with each batch.

    Args:
        x: stored pictures (M, C, S, S), perhaps memory-mapped.
        y: labels of the rows (N,).
        rows: which stored pictures they are (N,).
        cropping: stored size to picture size; random in shuffled batches, else in the middle.
        regions: x* of the rows; None: this split carries none.
        has_xstar: which rows carry x* (N,).
        ten_crops: yield x of shape (B, 10, C, size, size): corners and middle, also mirrored.
    """

    def __init__(
        self,
        x: NDArray[np.uint8],
        y: NDArray[np.int64],
        rows: NDArray[np.int64],
        cropping: Cropping,
        regions: Regions | None = None,
        has_xstar: NDArray[np.bool_] | None = None,
        ten_crops: bool = False,
    ) -> None:
        self.x, self.y, self.rows, self.cropping = x, torch.from_numpy(y), rows, cropping
        self.regions, self.ten_crops = regions, ten_crops
        self.has_xstar = None if has_xstar is None else torch.from_numpy(has_xstar)

    def __len__(self) -> int:
        return len(self.y)

    def batches(self, batch_size: int, shuffle: Generator | None = None) -> Iterator[Batch]:
        """Yield all rows: in order, or shuffled and augmented by the generator."""
        order = (
            torch.arange(len(self))
            if shuffle is None
            else torch.randperm(len(self), generator=shuffle)
        )
        for rows in torch.split(order, batch_size):
            yield self._batch(rows, shuffle)

    def _batch(self, rows: Tensor, generator: Generator | None) -> Batch:
        n = len(rows)
        stored = torch.from_numpy(self.x[self.rows[rows.numpy()]])  # (B, C, S, S) bytes
        if self.ten_crops:
            crops = [self.cropping.cut(stored, windows) for windows in self.cropping.ten(n)]
            return Batch(torch.stack(crops, 1).float() / 255, self.y[rows])
        windows = (
            self.cropping.centre(n) if generator is None else self.cropping.random(n, generator)
        )
        x, y = self.cropping.cut(stored, windows).float() / 255, self.y[rows]
        if self.regions is None or self.has_xstar is None:
            return Batch(x, y)
        mask = self.cropping.cut(self.regions.masks(rows.numpy()), windows)
        in_view = mask.flatten(1).any(1)  # a window may miss the object
        return Batch(x, y, mask, self.has_xstar[rows] & in_view)
