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
from lupi.loaders.images.boxes import PixelBox, boxes_of, region_of, stack_boxes
from lupi.loaders.images.decode import (
    UPRIGHT,
    BadImageError,
    Decoded,
    Fit,
    decode_image,
    fit_mask,
)
from lupi.loaders.images.layouts.index import Item
from lupi.loaders.images.layouts.trees import Tree

DARK = 2**14
"""16-bit images, such as those of 12-bit cameras and scanners, that use fewer values."""

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
    if image.brightest and image.brightest < DARK:
        findings.note(
            name,
            "16-bit image that becomes nearly black",
            f"its values reach {image.brightest:,} of 65,535, so that few of 256 grey levels are "
            "left: scale such images to 8 bits yourself",
        )
    if image.orientation != UPRIGHT:
        findings.note(name, "image turned upright", "as its EXIF orientation says")
    return data, image


class ImageWriter:
    """Writes decoded images to consecutive rows; undecodable files are reported and skipped.

    Args:
        tree: Files of the source.
        folder: Folder to write to.
        n_items: Maximum number of images.
        classes: Names of the classes; a label is an index into them.
        side: height and width to store.
        fit: what of an image is shown.
        convert_modes: convert what is not 8-bit RGB, or report it as bad.
        findings: Collects problems.
        as_masks: Store regions as masks; boxes are drawn into them.
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
        as_masks: bool = False,
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
        self.masks = self._file("masks", (n_items, side, side)) if as_masks else None
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
        self.boxes.append([])
        if self.masks is None:
            self.boxes[-1] = boxes_of(item, image, self.side, self.fit, self.findings)[1]
            self.has[row] = bool(self.boxes[-1]) or item.nothing
        elif item.has_region:
            self.has[row] = self._mask(item, image, self.masks[row])
        self.n_rows += 1

    def _mask(self, item: Item, image: Decoded, out: NDArray[np.uint8]) -> bool:
        """Write the region of an image as a mask; return whether it can be used."""
        try:
            inside = region_of(item, image, self.tree)
        except (BadImageError, OSError) as error:
            self.findings.add(item.masks[0], "unreadable mask", str(error))
            return False
        out[:] = fit_mask(inside, self.side, self.fit)
        if not inside.any():
            self.findings.note(item.name, "empty region", "nothing is marked in this image")
        elif not out.any():
            self.findings.note(
                item.name, "region outside the central square", "set task.fit to squash"
            )
            return False
        return True
