"""Maps of a frozen network in place of pixels, computed once and kept in a memory-mapped file.

    <cache>/<images>/maps-<key>.npy   (N, V, H, W, C) half precision: every image, and mirrored

The key depends on the network (its checksum), the size of the images and the variants; the folder
it is in, on the files of the images. The file is renamed when complete, so an existing one is
valid. Regions are the pixels' own, taken over to the places of the maps.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor
from torch.nn import functional as F

from lupi.core import Batch, Control
from lupi.errors import LupiError
from lupi.loaders.frozen import encode_once
from lupi.loaders.images.batches import ImageBatches, Images, Regions
from lupi.loaders.images.windows import Cropping
from lupi.settings import fingerprint

AT_ONCE = 4
N_MASKS = 256
"""Masks that are taken to the places of maps together."""
Encode = Callable[[Tensor], Tensor]
"""Pixels (B, C, S, S) in [0, 1] to maps (B, C', H, W)."""


@dataclass(frozen=True, slots=True)
class MapImages:
    """Images that are seen through a frozen network."""

    images: Images
    maps: NDArray[np.float16]
    """(N, V, H, W, C): variant 1, if there is one, is of the mirrored image"""

    @property
    def y(self) -> NDArray[np.int64]:
        """Labels (N,)."""
        return self.images.y

    @property
    def shape(self) -> tuple[int, int]:
        """Channels, and height and width of the maps."""
        return self.maps.shape[-1], self.maps.shape[2]

    def mean_and_std(self, rows: NDArray[np.int64]) -> tuple[list[float], list[float]]:
        """Return mean and standard deviation of each channel in some images."""
        values = self.maps[np.sort(rows), 0].reshape(-1, self.maps.shape[-1]).astype(np.float64)
        return values.mean(0).tolist(), np.maximum(values.std(0), 1e-3).tolist()

    def first(self, n: int) -> NDArray[np.int64]:
        """Return the first n rows."""
        return np.arange(n)

    def regions(
        self, rows: NDArray[np.int64], control: Control, seed: int
    ) -> tuple[Regions, NDArray[np.bool_]]:
        """Return the x* of some rows under a control, and which of them have any."""
        return self.images.regions(rows, control, seed)

    def split(self, rows: NDArray[np.int64], shown: ImageBatches) -> "MapSplit":
        """Return some rows as batches."""
        return MapSplit(self.maps, rows, shown)


class MapSplit:
    """Rows of maps; in shuffled batches, half of them are of mirrored images.

    Args:
        maps: (M, V, H, W, C), possibly memory-mapped.
        rows: Which of them are the rows (N,).
        shown: Labels and x* of the rows.
    """

    def __init__(
        self, maps: NDArray[np.float16], rows: NDArray[np.int64], shown: ImageBatches
    ) -> None:
        self.maps, self.rows, self.shown = maps, rows, shown

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def y(self) -> NDArray[np.int64]:
        """Labels of the rows."""
        return self.shown.y

    def batches(self, batch_size: int, shuffle: Generator | None = None) -> Iterator[Batch]:
        """Yield all rows: in order, or shuffled and mirrored by the generator."""
        n = len(self)
        order = torch.arange(n) if shuffle is None else torch.randperm(n, generator=shuffle)
        for some in torch.split(order, batch_size):
            yield self._batch(some.numpy(), shuffle)

    def _batch(self, rows: NDArray[np.int64], generator: Generator | None) -> Batch:
        cropping, n = self.shown.cropping, len(rows)
        windows = cropping.centre(n) if generator is None else cropping.random(n, generator)
        variants = windows.mirrored.long().numpy()
        maps = torch.from_numpy(self.maps[self.rows[rows], variants])  # (B, H, W, C)
        x, y = maps.permute(0, 3, 1, 2).float(), torch.from_numpy(self.shown.y[rows])
        if self.shown.regions is None or self.shown.has_xstar is None:
            return Batch(x, y)
        has = torch.from_numpy(self.shown.has_xstar[rows])
        return Batch(x, y, self._regions[rows, variants], has)

    @cached_property
    def _regions(self) -> Tensor:
        """Regions of all rows at the places of the maps, plain and mirrored: (N, 2, 1, H, W)."""
        assert self.shown.regions is not None
        places, found = self.maps.shape[2:4], []
        for rows in np.array_split(np.arange(len(self)), len(self) // N_MASKS + 1):
            masks = self.shown.regions.masks(rows)
            pooled = [F.adaptive_max_pool2d(some, places) for some in (masks, masks.flip(3))]
            found.append(torch.stack(pooled, 1))
        return torch.cat(found)


def check_cropping(cropping: Cropping, ten_crops: bool) -> None:
    """Raise an error for augmentation that cached maps do not have."""
    if cropping.size != cropping.stored or cropping.pad or ten_crops:
        raise LupiError(
            "a frozen network sees whole images, mirrored or not: leave out stored_size, "
            "augment.pad and test_crops, or set `network.tune: last`"
        )


def cached_maps(
    images: Images,
    encode: Encode,
    network: str,
    mirrored: bool,
    folder: Path | None,
) -> MapImages:
    """Return the maps of images, from the cache if they are there.

    Args:
        images: All images of a cache folder.
        encode: The frozen network.
        network: Its identity, such as the checksum of its weights.
        mirrored: Whether mirrored images are needed, too.
        folder: The folder; None: keep the maps in memory.
    """
    key = fingerprint({"network": network, "mirrored": mirrored, "n": len(images.y)})
    path = None if folder is None else folder / f"maps-{key}.npy"

    def encoded(start: int) -> NDArray[np.float16]:
        pixels = torch.from_numpy(images.x[start : start + AT_ONCE].copy()).float() / 255
        shown = torch.cat([pixels, pixels.flip(3)]) if mirrored else pixels
        by_variant = encode(shown).unflatten(0, (-1, len(pixels)))  # (V, B, C, H, W)
        maps: NDArray[np.float16] = by_variant.permute(1, 0, 3, 4, 2).half().numpy()
        return maps

    n = len(images.y)
    return MapImages(images, encode_once(path, n, range(0, n, AT_ONCE), encoded))
