"""Augmentation: a window of each image, optionally mirrored; the same window of its mask.

A batch of stored images (bytes, S x S) becomes one of images of `size` pixels. Windows lie
anywhere in the stored image with a border of `pad` black pixels around it.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Generator, Tensor


class Windows(NamedTuple):
    """The window of each image of a batch."""

    top: Tensor
    left: Tensor
    """(B,): of the window's first pixel, negative within the border."""
    mirrored: Tensor
    """(B,) bool"""


@dataclass(frozen=True, slots=True)
class Cropping:
    """Stored images to images of `size` pixels."""

    stored: int
    size: int
    pad: int = 0
    flip: bool = False

    @property
    def is_fixed(self) -> bool:
        """Whether every window is the one in the middle."""
        return self.size == self.stored and not self.pad and not self.flip

    def centre(self, n: int) -> Windows:
        """Return the windows in the middle, not mirrored."""
        start = torch.full((n,), (self.stored - self.size) // 2)
        return Windows(start, start, torch.zeros(n, dtype=torch.bool))

    def random(self, n: int, generator: Generator) -> Windows:
        """Draw random windows; without a choice, no random numbers are drawn."""
        windows = self.centre(n)
        room = self.stored - self.size + 2 * self.pad + 1
        if room > 1:
            top, left = torch.randint(room, (2, n), generator=generator) - self.pad
            windows = windows._replace(top=top, left=left)
        if self.flip:
            mirrored = torch.rand(n, generator=generator) < 0.5
            windows = windows._replace(mirrored=mirrored)
        return windows

    def ten(self, n: int) -> list[Windows]:
        """Return the four corners and the middle, each also mirrored."""
        low, high, middle = 0, self.stored - self.size, (self.stored - self.size) // 2
        starts = [(low, low), (low, high), (high, low), (high, high), (middle, middle)]
        return [
            Windows(torch.full((n,), top), torch.full((n,), left), torch.full((n,), mirrored))
            for mirrored in (False, True)
            for top, left in starts
        ]

    def cut(self, images: Tensor, windows: Windows) -> Tensor:
        """Cut windows out of images (B, C, S, S): (B, C, size, size), black in the border."""
        if self.size == self.stored and not any(part.any() for part in windows):
            return images
        rows, columns = (
            start[:, None] + torch.arange(self.size) for start in (windows.top, windows.left)
        )  # (B, size) each
        columns = torch.where(windows.mirrored[:, None], columns.flip(1), columns)
        last = self.stored - 1
        height = images.gather(2, _index(rows.clamp(0, last)[:, None, :, None], images, 3))
        out = height.gather(3, _index(columns.clamp(0, last)[:, None, None, :], height, 2))
        if self.pad:
            inside = [(edge >= 0) & (edge <= last) for edge in (rows, columns)]
            out *= inside[0][:, None, :, None] & inside[1][:, None, None, :]
        return out


def _index(index: Tensor, like: Tensor, along: int) -> Tensor:
    """Repeat an index over the channels and one more dimension of `like`."""
    shape = [-1, like.shape[1], -1, -1]
    shape[along] = like.shape[along]
    return index.expand(shape)
