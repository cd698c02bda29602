"""Bytes of a file to pixels of a fixed size, its boxes and mask along with it.

The visible part of an image is a window in its own pixels: the largest centre square (`crop`), or
all of it (`squash`). Image, mask and boxes use the same window. The EXIF orientation is not
applied, because annotations usually ignore it.
"""

import io
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from lupi.loaders.images.layouts.index import Box

Fit = Literal["crop", "squash"]

MAX_PIXELS = 64_000_000
FORMATS = ("JPEG", "PNG", "BMP", "GIF", "WEBP", "TIFF", "PPM")


class BadImageError(Exception):
    """A file that can't be decoded."""


class Decoded(NamedTuple):
    """An image at its stored size."""

    pixels: NDArray[np.uint8]
    """(3, side, side)"""
    width: int
    height: int
    """Of the file."""
    converted: str | None
    """What the file was, if not 8-bit RGB."""


@contextmanager
def image_size_limit() -> Iterator[None]:
    """Let Pillow raise an error for oversized images instead of a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        yield


def decode_image(data: bytes, side: int, fit: Fit) -> Decoded:
    """Decode to 8-bit RGB at side x side."""
    image = _open(data)
    width, height = image.size
    image.draft(None, (2 * side, 2 * side))  # large JPEGs: decode no more pixels than needed
    converted = None if image.mode == "RGB" else _mode_name(image)
    window = _scaled(view_window(width, height, fit), (width, height), image.size)
    pixels = _resized(_rgb(_loaded(image)), side, window, Image.Resampling.BILINEAR)
    return Decoded(pixels.transpose(2, 0, 1), width, height, converted)


def decode_mask(
    data: bytes, side: int, fit: Fit, size: tuple[int, int], values: Sequence[int] | None = None
) -> NDArray[np.uint8]:
    """Decode to (side, side), 1 where more than half is on the object; `size` is the image's.

    The object is where the mask has one of `values`; None: where it is not black.
    """
    image = _open(data)
    if image.size != size:
        raise BadImageError(f"the mask has {image.size} pixels, its image {size}")
    image = _loaded(image)
    if image.mode in ("RGBA", "LA"):  # opaque black is no object
        image = _rgb(image)
    pixels = np.asarray(image)
    if values is not None:
        if pixels.ndim == 3:
            raise BadImageError(f"mask_values need one value per pixel; it has {pixels.shape[-1]}")
        inside = np.isin(pixels, values)
    else:
        inside = np.asarray((pixels if pixels.ndim == 3 else pixels[..., None]).any(-1))
    coverage = _resized(
        Image.fromarray(inside.astype(np.uint8) * 255),
        side,
        view_window(*size, fit),
        Image.Resampling.BOX,
    )
    mask = coverage >= 128
    return (mask if mask.any() else coverage > 0).astype(np.uint8)  # thin objects stay visible


def view_window(width: int, height: int, fit: Fit) -> Box:
    """Return the part of an image that is shown."""
    if fit == "squash":
        return 0, 0, width, height
    edge = min(width, height)
    left, top = (width - edge) / 2, (height - edge) / 2
    return left, top, left + edge, top + edge


def place_box(box: Box, window: Box, side: int) -> tuple[int, int, int, int] | None:
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


def _open(data: bytes) -> Image.Image:
    try:
        image = Image.open(io.BytesIO(data), formats=FORMATS)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise BadImageError(str(error)) from None
    except Exception as error:  # a hostile file may raise anything inside a decoder
        raise BadImageError(_reason(error)) from None
    if math.prod(image.size) > MAX_PIXELS:
        raise BadImageError(f"it has {image.size} pixels; at most {MAX_PIXELS:,} are decoded")
    return image


def _loaded(image: Image.Image) -> Image.Image:
    try:
        image.load()
    except Exception as error:
        raise BadImageError(_reason(error)) from None
    return image


def _reason(error: Exception) -> str:
    if isinstance(error, UnidentifiedImageError):
        return f"unknown image format; supported: {', '.join(FORMATS)}"
    return str(error) or type(error).__name__


def _mode_name(image: Image.Image) -> str:
    if image.mode.startswith("I"):
        return "16-bit"
    names = {"L": "greyscale", "1": "black and white", "P": "palette", "LA": "greyscale"}
    return names.get(image.mode, image.mode)


def _rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I"):  # 16 bits: Pillow would clip them at 255
        values = np.asarray(image).astype(np.int64).clip(0, 65535)
        image = Image.fromarray((values // 257).astype(np.uint8))
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:  # onto black
        image = image.convert("RGBA")
        black = Image.new("RGBA", image.size, (0, 0, 0, 255))
        image = Image.alpha_composite(black, image)
    return image.convert("RGB")


def _scaled(window: Box, size: tuple[int, int], to: tuple[int, int]) -> Box:
    x, y = to[0] / size[0], to[1] / size[1]
    left, top, right, bottom = window
    return left * x, top * y, min(right * x, to[0]), min(bottom * y, to[1])


def _resized(
    image: Image.Image, side: int, window: Box, how: Image.Resampling
) -> NDArray[np.uint8]:
    return np.asarray(image.resize((side, side), how, box=window), dtype=np.uint8)
