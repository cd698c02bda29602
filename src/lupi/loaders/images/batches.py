"""Images with regions, in memory or memory-mapped, and the batches made of them.

x* of a row is its region, real or under a control; windows and masks are made with each batch.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from lupi.core import Batch, Control, Split
from lupi.loaders.images.windows import Cropping
from lupi.loaders.xstar.controls import control_boxes, control_masks
from lupi.loaders.xstar.regions import box_mask

MAX_VALUES = 2**24
"""Maximum number of pixel values for mean and standard deviation."""
AT_ONCE = 1024
"""Masks read at a time to take their mean."""


def max_images(n_channels: int, side: int) -> int:
    """Return the number of images with `MAX_VALUES` pixel values, at least one."""
    return max(1, MAX_VALUES // (n_channels * side * side))


def mean_and_std(x: NDArray[np.uint8]) -> tuple[list[float], list[float]]:
    """Return mean and standard deviation of each channel of images (N, C, S, S), in [0, 1].

    Sums are integers, so the result does not depend on the order of the images. A channel that is
    the same everywhere, as in images of a single dye, has a deviation of 1.
    """
    values = x.astype(np.uint32)
    n_values = values[:, 0].size
    mean = values.sum((0, 2, 3), dtype=np.int64) / n_values
    of_squares = (values * values).sum((0, 2, 3), dtype=np.int64) / n_values
    std = np.sqrt(np.maximum(of_squares - mean**2, 0.0))
    return (mean / 255).tolist(), np.where(std > 0, std / 255, 1.0).tolist()


class Regions(Protocol):
    """The region of the object in each row."""

    def masks(self, rows: NDArray[np.int64]) -> Tensor:
        """Return (B, 1, S, S) for some rows, in [0, 1]: 1 on the object."""
        ...


@dataclass(frozen=True, slots=True)
class BoxRegions:
    """Boxes (N, 4) or (N, K, 4) in images of `side` pixels."""

    boxes: NDArray[np.int64]
    side: int

    def masks(self, rows: NDArray[np.int64]) -> Tensor:
        """Draw the boxes of some rows."""
        return box_mask(torch.from_numpy(self.boxes[rows]), self.side, self.side)


@dataclass(frozen=True, slots=True)
class MaskRegions:
    """Row i has mask `of_row[i]` of the stored ones (M, S, S), moved by `shift[i]`."""

    stored: NDArray[Any]
    of_row: NDArray[np.int64]
    shift: NDArray[np.int64]
    """(N, 2): pixels down and right, around the edges."""

    def masks(self, rows: NDArray[np.int64]) -> Tensor:
        """Read the masks of some rows."""
        masks = torch.from_numpy(self.stored[self.of_row[rows]])
        if (shift := self.shift[rows]).any():
            moved = zip(masks, shift.tolist(), strict=True)
            masks = torch.stack([mask.roll(by, (0, 1)) for mask, by in moved])
        return masks[:, None].float()


@dataclass(frozen=True, slots=True)
class ImageBatches:
    """Contents of the batches of stored images: crops, labels and x* of some rows.

    Args:
        y: labels of the rows (N,).
        cropping: stored size to image size; random in shuffled batches, else in the middle.
        regions: x* of the rows, or None.
        has_xstar: whether each row has x* (N,).
        ten_crops: show x of shape (B, 10, C, size, size): corners and middle, also mirrored.
    """

    y: NDArray[np.int64]
    cropping: Cropping
    regions: Regions | None = None
    has_xstar: NDArray[np.bool_] | None = None
    ten_crops: bool = False

    @property
    def is_fixed(self) -> bool:
        """Whether an image looks the same in every epoch, and is shown once."""
        return self.cropping.is_fixed and not self.ten_crops

    def batch(self, rows: NDArray[np.int64], stored: Tensor, generator: Generator | None) -> Batch:
        """Show rows whose stored images (B, C, S, S) are given; augmented by a generator."""
        n, y = len(rows), torch.from_numpy(self.y[rows])
        if self.ten_crops:
            crops = [self.cropping.cut(stored, windows) for windows in self.cropping.ten(n)]
            return Batch(torch.stack(crops, 1).float() / 255, y)
        windows = (
            self.cropping.centre(n) if generator is None else self.cropping.random(n, generator)
        )
        x = self.cropping.cut(stored, windows).float() / 255
        if self.regions is None or self.has_xstar is None:
            return Batch(x, y)
        whole = self.regions.masks(rows)
        mask = self.cropping.cut(whole, windows)
        # A window may miss the object; an empty region says that there is none.
        in_view = mask.flatten(1).any(1) | ~whole.flatten(1).any(1)
        return Batch(x, y, mask, torch.from_numpy(self.has_xstar[rows]) & in_view)


class StoredImages(Protocol):
    """The images of one part of a dataset, in memory or on disk."""

    @property
    def y(self) -> NDArray[np.int64]:
        """Labels (N,)."""
        ...

    @property
    def shape(self) -> tuple[int, int]:
        """Channels, and height and width, as stored."""
        ...

    def mean_and_std(self, rows: NDArray[np.int64]) -> tuple[list[float], list[float]]:
        """Return mean and standard deviation of each channel in some images, in [0, 1]."""
        ...

    def first(self, n: int) -> NDArray[np.int64]:
        """Return n rows that are fast to read."""
        ...

    def regions(
        self, rows: NDArray[np.int64], control: Control, seed: int
    ) -> tuple[Regions, NDArray[np.bool_]]:
        """Return the x* of some rows under a control, and which of them have any."""
        ...

    def split(self, rows: NDArray[np.int64], shown: ImageBatches) -> Split:
        """Return some rows as batches."""
        ...


@dataclass(frozen=True, slots=True)
class Images:
    """Images with labels, and boxes or masks for some or all of them."""

    x: NDArray[np.uint8]
    """(N, C, S, S)"""
    y: NDArray[np.int64]
    boxes: NDArray[Any]
    """(N, 4) or (N, K, 4): x0, y0, x1, y1, end excluded; some may be empty"""
    masks: NDArray[np.uint8] | None = None
    """(N, S, S): 1 on the object; if given, boxes are not used"""
    has_region: NDArray[np.bool_] | None = None
    """(N,): which images have boxes or a mask; None: all"""

    @property
    def shape(self) -> tuple[int, int]:
        """Channels, and height and width, as stored."""
        return self.x.shape[1], self.x.shape[-1]

    def between(self, start: int, end: int) -> "Images":
        """Return the images of consecutive rows."""
        return Images(
            self.x[start:end],
            self.y[start:end],
            self.boxes[start:end],
            None if self.masks is None else self.masks[start:end],
            None if self.has_region is None else self.has_region[start:end],
        )

    def mean_and_std(self, rows: NDArray[np.int64]) -> tuple[list[float], list[float]]:
        """Return mean and standard deviation of each channel in some images, in [0, 1]."""
        return mean_and_std(self.x[np.sort(rows[: max_images(*self.shape)])])

    def first(self, n: int) -> NDArray[np.int64]:
        """Return the first n rows."""
        return np.arange(n)

    def split(self, rows: NDArray[np.int64], shown: ImageBatches) -> "ImageSplit":
        """Return some rows as batches."""
        return ImageSplit(self.x, rows, shown)

    def regions(
        self, rows: NDArray[np.int64], control: Control, seed: int
    ) -> tuple[Regions, NDArray[np.bool_]]:
        """Return the x* of some rows under a control, and which of them have any."""
        has = np.ones(len(rows), np.bool_) if self.has_region is None else self.has_region[rows]
        if self.masks is not None:
            return controlled_masks(self.masks, rows, has, control, seed), has
        return controlled_boxes(self.boxes[rows], has, self.x.shape[-1], control, seed), has


class ImageSplit:
    """Rows of images, kept as bytes; windows and masks are made with each batch.

    Args:
        x: stored images (M, C, S, S), possibly memory-mapped.
        rows: which of them are the rows (N,).
        shown: contents of the batches.
    """

    def __init__(self, x: NDArray[np.uint8], rows: NDArray[np.int64], shown: ImageBatches) -> None:
        self.x, self.rows, self.shown = x, rows, shown
        self._whole: Batch | None = None
        """All rows as one batch, if they are few and look the same in every epoch."""

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def y(self) -> NDArray[np.int64]:
        """Labels of the rows, for which no image has to be read."""
        return self.shown.y

    def batches(self, batch_size: int, shuffle: Generator | None = None) -> Iterator[Batch]:
        """Yield all rows: in order, or shuffled and augmented by the generator."""
        n = len(self)
        order = torch.arange(n) if shuffle is None else torch.randperm(n, generator=shuffle)
        if self.shown.is_fixed and n <= max_images(*self.x.shape[1:3]):
            if self._whole is None:
                self._whole = self._show(torch.arange(n))
            rows = self._whole if shuffle is None else self._whole.select(order)
            for start in range(0, n, batch_size):
                yield rows.select(slice(start, start + batch_size))
            return
        for some in torch.split(order, batch_size):
            yield self._show(some, shuffle)

    def _show(self, rows: Tensor, augmented_by: Generator | None = None) -> Batch:
        some = rows.numpy()
        return self.shown.batch(some, torch.from_numpy(self.x[self.rows[some]]), augmented_by)


def controlled_boxes(
    boxes: NDArray[Any], has: NDArray[np.bool_], side: int, control: Control, seed: int
) -> BoxRegions:
    """Apply a control among the rows with boxes; other rows do not change."""
    out = boxes.astype(np.int64)
    if has.any():
        out[has] = control_boxes(out[has], control, seed, side, side)
    return BoxRegions(out, side)


def controlled_masks(
    stored: NDArray[np.uint8],
    rows: NDArray[np.int64],
    has: NDArray[np.bool_],
    control: Control,
    seed: int,
) -> MaskRegions:
    """Apply a control among the rows with a stored mask, without copying masks."""
    side = stored.shape[-1]
    of_row, shift = rows.copy(), np.zeros((len(rows), 2), dtype=np.int64)
    if control == "constant":
        return MaskRegions(_mean(stored, rows[has])[None], np.zeros_like(rows), shift)
    whose, shift[has] = control_masks(int(has.sum()), control, seed, side)
    of_row[has] = rows[has][whose]
    return MaskRegions(stored, of_row, shift)


def _mean(stored: NDArray[np.uint8], rows: NDArray[np.int64]) -> NDArray[np.float32]:
    total = np.zeros(stored.shape[1:], dtype=np.int64)
    for start in range(0, len(rows), AT_ONCE):
        total += stored[rows[start : start + AT_ONCE]].sum(0, dtype=np.int64)
    mean: NDArray[np.float32] = (total / max(len(rows), 1)).astype(np.float32)
    return mean
