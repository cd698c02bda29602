"""The region of an image, as masks and annotations give it, in the pixels that are stored.

Image, masks and boxes use the same window (`view_window`). Masks and shapes that fit the file as
it was stored are turned as the image was.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from lupi.loaders.findings import Findings
from lupi.loaders.images.annotations.shapes import Box, draw_shapes
from lupi.loaders.images.annotations.voc import read_voc
from lupi.loaders.images.annotations.xml import BadXmlError
from lupi.loaders.images.decode import (
    UPRIGHT,
    BadImageError,
    Decoded,
    Fit,
    load_pixels,
    open_image,
    resized,
    to_rgb,
    turned,
    view_window,
)
from lupi.loaders.images.index import Item
from lupi.loaders.images.trees import Tree

PixelBox = tuple[int, int, int, int]
"""x0, y0, x1, y1 in stored pixels, end excluded."""

ROUNDING = 1e-6
"""Pixels by which a scaled box may exceed the image."""
LOSSY = 128
"""Values of JPEG masks from which on a pixel is on the object: compression blurs black."""


def with_annotation(item: Item, tree: Tree, findings: Findings) -> Item:
    """Return an item with the boxes of the file that annotates it, if there is one."""
    if item.annotation is None:
        return item
    try:
        found = read_voc(tree.read(item.annotation))
    except (BadXmlError, OSError) as error:
        findings.add(item.annotation, "unreadable annotation", str(error))
        return item._replace(annotation=None)
    return item._replace(annotation=None, shapes=found.shapes or None, shapes_size=found.size)


def region_of(item: Item, image: Decoded, tree: Tree) -> NDArray[np.bool_]:
    """Return (height, width) of an item's image: True on its masks and shapes."""
    size = image.width, image.height
    inside = np.zeros(size[::-1], dtype=np.bool_)
    for mask in item.masks:
        inside |= read_mask(tree.read(mask), size, item.mask_values, image.orientation)
    if item.shapes and _fits_stored(item, image):
        drawn = draw_shapes(item.shapes, item.shapes_size, image.stored_size)
        as_image = Image.fromarray(drawn.astype(np.uint8))
        inside |= np.asarray(turned(as_image, image.orientation)) > 0
    elif item.shapes:
        inside |= draw_shapes(item.shapes, item.shapes_size, size)
    return inside


def read_mask(
    data: bytes,
    size: tuple[int, int],
    values: Sequence[int] | None = None,
    orientation: int = UPRIGHT,
) -> NDArray[np.bool_]:
    """Return (height, width): True on the object, for an image of this size after turning it.

    The object is where the mask has one of `values`; None: where it is not black. A mask that has
    the size of the image before it was turned, is turned like it.
    """
    image = open_image(data)
    is_lossy = image.format == "JPEG"
    stored = size[::-1] if orientation > 4 else size
    if image.size not in (size, stored):
        raise BadImageError(
            f"the mask has {image.size[0]} x {image.size[1]} pixels, its image "
            f"{size[0]} x {size[1]}"
        )
    was_turned = image.size == size
    image = load_pixels(image)
    if image.mode in ("RGBA", "LA"):  # opaque black is no object
        image = to_rgb(image)
    pixels = np.asarray(image if was_turned else turned(image, orientation))
    if values is not None:
        if pixels.ndim == 3:
            raise BadImageError(f"mask_values need one value per pixel; it has {pixels.shape[-1]}")
        return np.isin(pixels, values)
    if is_lossy:
        pixels = pixels >= LOSSY
    return np.asarray((pixels if pixels.ndim == 3 else pixels[..., None]).any(-1))


def fit_mask(inside: NDArray[np.bool_], side: int, fit: Fit) -> NDArray[np.uint8]:
    """Return (side, side), 1 where more than half of a pixel is inside."""
    height, width = inside.shape
    coverage = resized(
        Image.fromarray(inside.astype(np.uint8) * 255),
        side,
        view_window(width, height, fit),
        Image.Resampling.BOX,
    )
    mask = coverage >= 128
    return (mask if mask.any() else coverage > 0).astype(np.uint8)  # thin objects stay visible


def boxes_of(
    item: Item, image: Decoded, side: int, fit: Fit, findings: Findings
) -> tuple[list[Box], list[PixelBox]]:
    """Return the usable boxes of an item, in pixels of the image and in stored pixels.

    Boxes that can't be used are added to `findings`.
    """
    size = image.width, image.height
    boxes, drawn_on = item.boxes, item.shapes_size
    if _fits_stored(item, image):
        boxes = tuple(_turned_box(box, image.orientation, image.stored_size) for box in boxes)
        drawn_on = None
    usable = _usable(boxes, drawn_on, size, item.name, findings)

    def note(box: Box) -> None:
        given = f"{box} in {size[0]} x {size[1]} pixels"
        findings.note(item.name, "box outside the central square", given)

    return usable, place_boxes(usable, size, side, fit, note)


def _fits_stored(item: Item, image: Decoded) -> bool:
    """Return whether shapes refer to the image as it was stored, before it was turned."""
    size = image.width, image.height
    return item.shapes_size == image.stored_size != size


def _turned_box(box: Box, orientation: int, size: tuple[float, float]) -> Box:
    """Return a box of an image as it was stored, of this size, after turning it by a quarter."""
    width, height = size
    x0, y0, x1, y1 = box
    if orientation in (6, 7):
        y0, y1 = height - y1, height - y0
    if orientation in (7, 8):
        x0, x1 = width - x1, width - x0
    return y0, x0, y1, x1


def _usable(
    boxes: Sequence[Box],
    drawn_on: tuple[float, float] | None,
    size: tuple[int, int],
    name: str,
    findings: Findings,
) -> list[Box]:
    width, height = size
    stretch = (1.0, 1.0) if drawn_on is None else (width / drawn_on[0], height / drawn_on[1])
    kept: list[Box] = []
    for box in boxes:
        x0, y0, x1, y1 = (edge * stretch[i % 2] for i, edge in enumerate(box))
        clipped: Box = (max(x0, 0), max(y0, 0), min(x1, width), min(y1, height))
        given = f"{box} in {width} x {height} pixels"
        if x1 <= x0 or y1 <= y0:
            findings.add(name, "zero-area box", given)
        elif clipped[0] >= clipped[2] or clipped[1] >= clipped[3]:
            findings.add(name, "box outside the image", f"{given}; not used")
        else:
            if max(map(abs, np.subtract(clipped, (x0, y0, x1, y1)))) > ROUNDING:
                findings.add(name, "box outside the image", f"{given}; cut off")
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


def place_box(box: Box, window: Box, side: int) -> PixelBox | None:
    """Return a box in stored pixels, at least one wide and high; None if the window misses it."""
    left, top, right, bottom = window
    spans = []
    for low, high, start, end in ((0, 2, left, right), (1, 3, top, bottom)):
        scale = side / (end - start)
        first = max((box[low] - start) * scale, 0)
        last = min((box[high] - start) * scale, side)
        if last <= first:
            return None
        whole = min(math.floor(first + 0.5), side - 1)
        spans.append((whole, max(math.floor(last + 0.5), whole + 1)))
    (x0, x1), (y0, y1) = spans
    return x0, y0, x1, y1


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
