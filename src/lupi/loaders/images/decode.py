"""Bytes of a file to pixels of a fixed size.

The visible part of an image is a window in its own pixels: the largest centre square (`crop`), or
all of it (`squash`). Images are turned as their EXIF orientation says.
"""

import io
import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from lupi.loaders.images.annotations.shapes import MAX_PIXELS, Box

Fit = Literal["crop", "squash"]

UPRIGHT = 1
ORIENTATION = 0x0112
"""EXIF tag of the orientation."""
TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
FORMATS = ("JPEG", "PNG", "BMP", "GIF", "WEBP", "TIFF", "PPM")


class BadImageError(Exception):
    """A file that can't be decoded."""


class Decoded(NamedTuple):
    """An image at its stored size."""

    pixels: NDArray[np.uint8]
    """(3, side, side)"""
    width: int
    height: int
    """Of the file, turned upright."""
    converted: str | None
    """What the file was, if not 8-bit RGB."""
    orientation: int = UPRIGHT
    """EXIF orientation of the file, which was applied."""
    brightest: int | None = None
    """Largest value of a 16-bit file."""

    @property
    def stored_size(self) -> tuple[int, int]:
        """Width and height of the file as it is stored, not turned."""
        turned = self.orientation > 4
        return (self.height, self.width) if turned else (self.width, self.height)


def decode_image(data: bytes, side: int, fit: Fit) -> Decoded:
    """Decode to 8-bit RGB at side x side."""
    image = open_image(data)
    stored = image.size
    image.draft(None, (2 * side, 2 * side))  # large JPEGs: decode no more pixels than needed
    converted = None if image.mode == "RGB" else _mode_name(image)
    orientation = _orientation(image)
    width, height = stored[::-1] if orientation > 4 else stored
    image = load_pixels(image)
    brightest = int(np.asarray(image).max()) if image.mode.startswith("I") else None
    image = turned(to_rgb(image), orientation)
    window = _scaled(view_window(width, height, fit), (width, height), image.size)
    pixels = resized(image, side, window, Image.Resampling.BILINEAR)
    pixels = pixels.transpose(2, 0, 1)
    return Decoded(pixels, width, height, converted, orientation, brightest)


def view_window(width: int, height: int, fit: Fit) -> Box:
    """Return the part of an image that is shown."""
    if fit == "squash":
        return 0, 0, width, height
    edge = min(width, height)
    left, top = (width - edge) / 2, (height - edge) / 2
    return left, top, left + edge, top + edge


def open_image(data: bytes) -> Image.Image:
    """Open an image of a known format and of a size that can be decoded."""
    try:
        image = Image.open(io.BytesIO(data), formats=FORMATS)
    except Exception as error:  # a hostile file may raise anything inside a decoder
        raise BadImageError(_reason(error)) from None
    if math.prod(image.size) > MAX_PIXELS:
        raise BadImageError(f"it has {image.size} pixels; at most {MAX_PIXELS:,} are decoded")
    return image


def load_pixels(image: Image.Image) -> Image.Image:
    """Decode the pixels of an open image."""
    try:
        image.load()
    except Exception as error:
        raise BadImageError(_reason(error)) from None
    return image


def _orientation(image: Image.Image) -> int:
    try:
        given = image.getexif().get(ORIENTATION, UPRIGHT)
    except Exception:  # damaged EXIF data say nothing
        return UPRIGHT
    return given if given in range(1, 9) else UPRIGHT


def turned(image: Image.Image, orientation: int) -> Image.Image:
    """Return an image turned and mirrored as an EXIF orientation says."""
    if orientation == UPRIGHT:
        return image
    return image.transpose(TURNS[orientation])


def _reason(error: Exception) -> str:
    if isinstance(error, UnidentifiedImageError):
        return f"unknown image format; supported: {', '.join(FORMATS)}"
    return str(error) or type(error).__name__


def _mode_name(image: Image.Image) -> str:
    if image.mode.startswith("I"):
        return "16-bit"
    names = {"L": "greyscale", "1": "black and white", "P": "palette", "LA": "greyscale"}
    return names.get(image.mode, image.mode)


def to_rgb(image: Image.Image) -> Image.Image:
    """Convert an image of any mode to 8-bit RGB."""
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


def resized(image: Image.Image, side: int, window: Box, how: Image.Resampling) -> NDArray[np.uint8]:
    """Resize a window of an image to side x side."""
    return np.asarray(image.resize((side, side), how, box=window), dtype=np.uint8)
