"""Bytes of a file to pixels of a fixed size, its boxes and mask along with it.

The visible part of an image is a window in its own pixels: the largest centre square (`crop`), or
all of it (`squash`). Image, mask and boxes use the same window. Images are turned as their EXIF
orientation says, and so are masks and boxes that fit the file as it was stored.
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

from lupi.loaders.images.annotations.shapes import Box

Fit = Literal["crop", "squash"]

MAX_PIXELS = 64_000_000
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
LOSSY = 128
"""Values of JPEG masks from which on a pixel is on the object: compression blurs black."""
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


@contextmanager
def image_size_limit() -> Iterator[None]:
    """Let Pillow raise an error for oversized images instead of a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        yield


def decode_image(data: bytes, side: int, fit: Fit) -> Decoded:
    """Decode to 8-bit RGB at side x side."""
    image = _open(data)
    stored = image.size
    image.draft(None, (2 * side, 2 * side))  # large JPEGs: decode no more pixels than needed
    converted = None if image.mode == "RGB" else _mode_name(image)
    orientation = _orientation(image)
    width, height = stored[::-1] if orientation > 4 else stored
    image = _loaded(image)
    brightest = int(np.asarray(image).max()) if image.mode.startswith("I") else None
    image = _turned(_rgb(image), orientation)
    window = _scaled(view_window(width, height, fit), (width, height), image.size)
    pixels = _resized(image, side, window, Image.Resampling.BILINEAR)
    pixels = pixels.transpose(2, 0, 1)
    return Decoded(pixels, width, height, converted, orientation, brightest)


def image_size(data: bytes) -> tuple[int, int]:
    """Return width and height of an image, turned upright, without decoding its pixels."""
    image = _open(data)
    return image.size[::-1] if _orientation(image) > 4 else image.size


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
    image = _open(data)
    is_lossy = image.format == "JPEG"
    stored = size[::-1] if orientation > 4 else size
    if image.size not in (size, stored):
        raise BadImageError(
            f"the mask has {image.size[0]} x {image.size[1]} pixels, its image "
            f"{size[0]} x {size[1]}"
        )
    was_turned = image.size == size
    image = _loaded(image)
    if image.mode in ("RGBA", "LA"):  # opaque black is no object
        image = _rgb(image)
    pixels = np.asarray(image if was_turned else _turned(image, orientation))
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
    coverage = _resized(
        Image.fromarray(inside.astype(np.uint8) * 255),
        side,
        view_window(width, height, fit),
        Image.Resampling.BOX,
    )
    mask = coverage >= 128
    return (mask if mask.any() else coverage > 0).astype(np.uint8)  # thin objects stay visible


def decode_mask(
    data: bytes, side: int, fit: Fit, size: tuple[int, int], values: Sequence[int] | None = None
) -> NDArray[np.uint8]:
    """Decode the mask of an image of this size to (side, side)."""
    return fit_mask(read_mask(data, size, values), side, fit)


def turn_box(box: Box, orientation: int, size: tuple[float, float]) -> Box:
    """Return a box of an image as it was stored, of this size, after turning it by a quarter."""
    width, height = size
    x0, y0, x1, y1 = box
    if orientation in (6, 7):
        y0, y1 = height - y1, height - y0
    if orientation in (7, 8):
        x0, x1 = width - x1, width - x0
    return (y0, x0, y1, x1) if orientation > 4 else box


def turn_mask(mask: NDArray[np.bool_], orientation: int) -> NDArray[np.bool_]:
    """Return a mask (height, width), turned as an EXIF orientation says."""
    return np.asarray(_turned(Image.fromarray(mask.astype(np.uint8)), orientation)) > 0


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


def _orientation(image: Image.Image) -> int:
    try:
        given = image.getexif().get(ORIENTATION, UPRIGHT)
    except Exception:  # damaged EXIF data say nothing
        return UPRIGHT
    return given if given in range(1, 9) else UPRIGHT


def _turned(image: Image.Image, orientation: int) -> Image.Image:
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
