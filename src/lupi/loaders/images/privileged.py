"""The x* of rows of images: their boxes or masks, real or under a control."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lupi.core import Control
from lupi.loaders.images.regions import box_mask
from lupi.loaders.xstar.controls import control_boxes, control_masks

AT_ONCE = 1024
"""Masks read at a time to take their mean."""


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
