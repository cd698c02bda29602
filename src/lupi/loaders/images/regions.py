"""The region of an image, as masks and annotations give it, in the pixels that are stored.

Image, masks and boxes use the same window (`view_window`). Masks and shapes that fit the file as
it was stored are turned as the image was.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from lupi.loaders.findings import Findings
from lupi.loaders.images.annotations.shapes import draw_shapes
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

Boxes = NDArray[np.float64]
"""(…, 4): x0, y0, x1, y1 of each."""
PixelBoxes = NDArray[np.int16]
"""The same in whole pixels of stored images, end excluded."""

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


def boxes_of(item: Item, image: Decoded, fit: Fit, findings: Findings) -> Boxes:
    """Return the usable boxes of an item as fractions of the visible part of its image, (K, 4).

    Boxes that can't be used are added to `findings`.
    """
    width, height = size = image.width, image.height
    boxes = np.array(item.boxes, np.float64).reshape(-1, 4)
    if _fits_stored(item, image):
        boxes = _turned_boxes(boxes, image.orientation, image.stored_size)
    elif item.shapes_size is not None:
        with np.errstate(over="ignore"):  # infinite edges are cut off
            boxes = boxes * np.tile(np.divide(size, item.shapes_size), 2)
    inside = boxes.clip(0, [*size, *size])
    left, top, right, bottom = view_window(width, height, fit)
    seen = (inside - [left, top, left, top]) / np.tile([right - left, bottom - top], 2)
    seen = seen.clip(0, 1)
    for box, kept, shown in zip(boxes, is_filled(inside), is_filled(seen), strict=True):
        given = f"{tuple(box.tolist())} in {width} x {height} pixels"
        if not is_filled(box):
            findings.add(item.name, "zero-area box", given)
        elif not kept:
            findings.add(item.name, "box outside the image", f"{given}; not used")
        else:
            if (box < -ROUNDING).any() or (box > np.tile(size, 2) + ROUNDING).any():
                findings.add(item.name, "box outside the image", f"{given}; cut off")
            if not shown:
                findings.note(item.name, "box outside the central square", given)
    usable: Boxes = seen[is_filled(boxes) & is_filled(inside) & is_filled(seen)]
    return usable


def is_filled(boxes: Boxes) -> NDArray[np.bool_]:
    """Return which of the boxes (…, 4) have an area."""
    return np.asarray((boxes[..., 2:] > boxes[..., :2]).all(-1))


def _fits_stored(item: Item, image: Decoded) -> bool:
    """Return whether shapes refer to the image as it was stored, before it was turned."""
    size = image.width, image.height
    return item.shapes_size == image.stored_size != size


def _turned_boxes(boxes: Boxes, orientation: int, size: tuple[float, float]) -> Boxes:
    """Return boxes of an image as it was stored, of this size, after turning it by a quarter."""
    width, height = size
    x0, y0, x1, y1 = boxes.T
    if orientation in (6, 7):
        y0, y1 = height - y1, height - y0
    if orientation in (7, 8):
        x0, x1 = width - x1, width - x0
    return np.stack([y0, x0, y1, x1], 1)


def stack_boxes(boxes: Boxes, n_boxes: NDArray[np.int64], n_places: int, side: int) -> PixelBoxes:
    """Return the boxes of N images in pixels of stored images, (N, n_places, 4).

    A box is at least one pixel wide and high; other places are filled up with empty boxes.

    Args:
        boxes: Those of all images in turn, as fractions of what is visible.
        n_boxes: How many each image has, (N,).
        n_places: The maximum of `n_boxes`, or more.
        side: Height and width of stored images.
    """
    edges = np.floor(boxes * side + 0.5)
    edges[:, :2] = edges[:, :2].clip(max=side - 1)
    edges[:, 2:] = edges[:, 2:].clip(min=edges[:, :2] + 1)
    stacked = np.zeros((len(n_boxes), max(n_places, 1), 4), np.int16)
    place = np.arange(len(boxes)) - np.repeat(np.cumsum(n_boxes) - n_boxes, n_boxes)
    stacked[np.repeat(np.arange(len(n_boxes)), n_boxes), place] = edges
    return stacked
