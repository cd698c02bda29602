"""Decode images, boxes and masks one after another into the files of a cache folder."""

import math
import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from lupi.errors import LupiError
from lupi.loaders.findings import Findings
from lupi.loaders.images.boxes import PixelBox, boxes_of, stack_boxes
from lupi.loaders.images.decode import BadImageError, Decoded, Fit, decode_image, decode_mask
from lupi.loaders.images.layouts.index import Item
from lupi.loaders.images.layouts.trees import Tree

OnDecoded = Callable[[int, int], None]
"""Called with the number of images decoded so far, and of all."""


def read_image(
    tree: Tree, name: str, side: int, fit: Fit, convert_modes: bool, findings: Findings
) -> tuple[bytes, Decoded] | None:
    """Return a file and its image; for an invalid file, add to `findings` and return None."""
    try:
        data = tree.read(name)
        image = decode_image(data, side, fit)
    except (BadImageError, OSError) as error:
        findings.add(name, "unreadable image", str(error))
        return None
    if image.converted is not None:
        if not convert_modes:
            findings.add(name, f"{image.converted} image", "not 8-bit RGB")
            return None
        findings.note(name, f"{image.converted} image converted to RGB")
    return data, image


class ImageWriter:
    """Fills rows from the first on; what can't be decoded takes none and is reported.

    Args:
        tree: where the images are.
        folder: where the files go.
        n_items: how many images will come.
        classes: a label is the place of an item's class here.
        side: height and width to store.
        fit: what of an image is shown.
        convert_modes: convert what is not 8-bit RGB, or report it as bad.
        findings: Collects problems.
    """

    def __init__(
        self,
        tree: Tree,
        folder: Path,
        n_items: int,
        classes: Sequence[str],
        side: int,
        fit: Fit,
        convert_modes: bool,
        findings: Findings,
    ) -> None:
        self.tree, self.folder, self.n_items, self.findings = tree, folder, n_items, findings
        self.side, self.fit, self.convert_modes = side, fit, convert_modes
        self.labels = {name: label for label, name in enumerate(classes)}
        self.n_seen = self.n_rows = 0
        free = shutil.disk_usage(folder).free
        if (needed := n_items * 3 * side * side) > free:
            raise LupiError(
                f"task.cache: {folder.parent} needs {needed / 2**30:.1f} GiB, but "
                f"{free / 2**30:.1f} are free; choose another folder or fewer images (n_train)"
            )
        self.x = self._file("x", (n_items, 3, side, side))
        self.masks: NDArray[np.uint8] | None = None
        self.boxes: list[list[PixelBox]] = []
        self.y = np.zeros(n_items, dtype=np.int64)
        self.has = np.zeros(n_items, dtype=np.bool_)
        self.keys = np.zeros(n_items, dtype=np.uint64)
        self.groups: dict[str, int] = {}
        self.group = np.zeros(n_items, dtype=np.int64)

    def write(self, items: Sequence[Item], on_decoded: OnDecoded) -> int:
        """Decode items into the next rows; return how many could be."""
        before = self.n_rows
        told = 0.0
        for item in items:
            self._write(item)
            self.n_seen += 1
            if time.monotonic() - told > 0.1 or self.n_seen == self.n_items:
                told = time.monotonic()
                on_decoded(self.n_seen, self.n_items)
        return self.n_rows - before

    def close(self) -> None:
        """Write what is not written yet."""
        self.x.flush()
        np.save(self.folder / "boxes.npy", stack_boxes(self.boxes))
        np.save(self.folder / "y.npy", self.y)
        np.save(self.folder / "has.npy", self.has)
        np.save(self.folder / "keys.npy", self.keys)
        if self.groups:
            np.save(self.folder / "groups.npy", self.group)

    def _file(self, name: str, shape: tuple[int, ...]) -> np.memmap:
        path = self.folder / f"{name}.npy"
        pixels = open_memmap(path, mode="w+", dtype=np.uint8, shape=shape)
        if not hasattr(os, "posix_fallocate"):
            return pixels
        try:
            with path.open("r+b") as file:  # a page that finds no room later would be a bus error
                os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
        except OSError as error:
            raise LupiError(
                f"task.cache: {self.folder.parent} has no room for {math.prod(shape):,} bytes "
                f"({error.strerror}); choose another folder, or fewer images (n_train)"
            ) from None
        return pixels

    def _write(self, item: Item) -> None:
        read = read_image(
            self.tree, item.name, self.side, self.fit, self.convert_modes, self.findings
        )
        if read is None:
            return
        _, image = read
        row = self.n_rows
        self.x[row] = image.pixels
        self.y[row] = self.labels[item.label]
        self.keys[row] = item.key
        if item.group is not None:
            self.group[row] = self.groups.setdefault(item.group, len(self.groups))
        size = image.width, image.height
        self.boxes.append(boxes_of(item, size, self.side, self.fit, self.findings)[1])
        self.has[row] = bool(self.boxes[-1]) or self._mask(item, image, row)
        self.n_rows += 1

    def _mask(self, item: Item, image: Decoded, row: int) -> bool:
        """Write the mask of an image; tell whether there is one that can be used."""
        if item.mask is None:
            return False
        try:
            size = image.width, image.height
            mask = decode_mask(
                self.tree.read(item.mask), self.side, self.fit, size, item.mask_values
            )
        except (BadImageError, OSError) as error:
            self.findings.add(item.mask, "unreadable mask", str(error))
            return False
        if not mask.any():
            self.findings.add(item.mask, "empty mask", "no pixel of what is shown is on the object")
            return False
        if self.masks is None:
            self.masks = self._file("masks", (self.n_items, self.side, self.side))
        self.masks[row] = mask
        return True
