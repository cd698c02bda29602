"""Convert the regions of a source to pixels: boxes without unusable ones, and masks."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lupi.loaders.findings import Findings
from lupi.loaders.images.annotations.shapes import Box, draw_shapes
from lupi.loaders.images.decode import (
    Decoded,
    Fit,
    place_box,
    read_mask,
    turn_box,
    turn_mask,
    view_window,
)
from lupi.loaders.images.layouts.index import Item
from lupi.loaders.images.layouts.trees import Tree

PixelBox = tuple[int, int, int, int]
"""x0, y0, x1, y1 in stored pixels, end excluded."""

ROUNDING = 1e-6
"""Pixels by which a scaled box may exceed the image."""


def region_of(item: Item, image: Decoded, tree: Tree) -> NDArray[np.bool_]:
    """Return (height, width) of an item's image: True on its masks, outlines and boxes."""
    size, stored = (image.width, image.height), image.stored_size
    inside = np.zeros(size[::-1], dtype=np.bool_)
    for mask in item.masks:
        inside |= read_mask(tree.read(mask), size, item.mask_values, image.orientation)
    shapes = (*item.outlines, *item.boxes)
    if shapes and _fits_stored(item, image):
        drawn = draw_shapes(shapes, item.boxes_size, stored)
        inside |= turn_mask(drawn, image.orientation)
    elif shapes:
        inside |= draw_shapes(shapes, item.boxes_size, size)
    return inside


def _fits_stored(item: Item, image: Decoded) -> bool:
    """Return whether shapes refer to the image as it was stored, before it was turned."""
    size = image.width, image.height
    return item.boxes_size == image.stored_size != size


def boxes_of(
    item: Item, image: Decoded, side: int, fit: Fit, findings: Findings
) -> tuple[list[Box], list[PixelBox]]:
    """Return the usable boxes of an item, in pixels of the image and in stored pixels.

    Boxes that can't be used are added to `findings`.
    """
    size = image.width, image.height
    if _fits_stored(item, image):
        turned = tuple(turn_box(b, image.orientation, image.stored_size) for b in item.boxes)
        item = replace(item, boxes=turned, boxes_size=None)
    usable = _usable(item, size, findings)

    def note(box: Box) -> None:
        given = f"{box} in {size[0]} x {size[1]} pixels"
        findings.note(item.name, "box outside the central square", given)

    return usable, place_boxes(usable, size, side, fit, note)


def _usable(item: Item, size: tuple[int, int], findings: Findings) -> list[Box]:
    width, height = size
    stretch = (1.0, 1.0)
    if item.boxes_size is not None:
        stretch = (width / item.boxes_size[0], height / item.boxes_size[1])
    kept: list[Box] = []
    for box in item.boxes:
        x0, y0, x1, y1 = (edge * stretch[i % 2] for i, edge in enumerate(box))
        clipped: Box = (max(x0, 0), max(y0, 0), min(x1, width), min(y1, height))
        given = f"{box} in {width} x {height} pixels"
        if x1 <= x0 or y1 <= y0:
            findings.add(item.name, "zero-area box", given)
        elif clipped[0] >= clipped[2] or clipped[1] >= clipped[3]:
            findings.add(item.name, "box outside the image", f"{given}; not used")
        else:
            if max(map(abs, np.subtract(clipped, (x0, y0, x1, y1)))) > ROUNDING:
                findings.add(item.name, "box outside the image", f"{given}; cut off")
            kept.append(clipped)
    return kept


def place_boxes(
    boxes: Sequence[Box],
    size: tuple[int, int],
    side: int,
    fit: Fit,
    on_outside: Callable[[Box], None] = lambda box: None,
) -> list[PixelBox]:
    """Return boxes of an image in stored pixels, without those outside the visible part."""
    window = view_window(*size, fit)
    placed = []
    for box in boxes:
        where = place_box(box, window, side)
        if where is None:
            on_outside(box)
        else:
            placed.append(where)
    return placed


def stack_boxes(
    boxes: Sequence[Sequence[PixelBox]], n_places: int | None = None
) -> NDArray[np.int16]:
    """Return the boxes of N images as (N, K, 4), padded with empty ones.

    K is `n_places`, or the maximum number of boxes of an image, at least 1.
    """
    most = max(map(len, boxes), default=0) if n_places is None else n_places
    stacked = np.zeros((len(boxes), max(most, 1), 4), dtype=np.int16)
    for row, of_row in enumerate(boxes):
        stacked[row, : len(of_row)] = np.array(of_row, dtype=np.int16).reshape(-1, 4)
    return stacked
