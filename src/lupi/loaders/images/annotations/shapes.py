"""What annotations of an image consist of: boxes, polygons and run lengths, and their drawing."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from lupi.errors import LupiError

Box = tuple[float, float, float, float]
"""x0, y0, x1, y1 in pixels, end excluded."""

MAX_PIXELS = 64_000_000
"""Largest image that is decoded, or whose run lengths are expanded."""
MAX_POINTS = 100_000
"""Most points of a polygon."""
N_ELLIPSE = 48
"""Points of the polygon that stands for an ellipse."""


class BadShapeError(Exception):
    """A shape that can't be read."""


@dataclass(frozen=True, slots=True)
class Polygon:
    """The corners of an outline, as x, y, x, y and so on."""

    points: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class RunLengths:
    """Lengths of runs outside and inside the object, in turn, starting outside."""

    counts: tuple[int, ...]
    width: int
    height: int
    by_column: bool
    """Whether pixels are counted down the columns, as COCO does, or along the rows."""
    offset: tuple[int, int] | None = None
    """Left and top of the runs in the image; None: they fill it."""


Shape = Box | Polygon | RunLengths


class Annotation(NamedTuple):
    """What a file says about one image."""

    where: str
    """Position in the file, for messages."""
    file: str
    """Name of the image as the file gives it."""
    shapes: tuple[Shape, ...] = ()
    """Empty: the annotator found nothing."""
    size: tuple[float, float] | None = None
    """Width and height that the shapes refer to; None: those of the image."""
    labels: tuple[str, ...] = ()
    """Classes that the annotator named, of shapes or of the whole image."""
    problem: str = ""
    """Why a shape was left out."""


def box(numbers: Any) -> Box:
    """Return four finite numbers as a box."""
    x0, y0, x1, y1 = _finite(numbers, 4)
    return x0, y0, x1, y1


def polygon(numbers: Sequence[Any]) -> Polygon:
    """Return three or more points, x, y, x, y, …, as a polygon."""
    points = _finite(numbers, None)
    if len(points) < 6 or len(points) % 2 or len(points) > 2 * MAX_POINTS:
        raise BadShapeError(f"expected 3 to {MAX_POINTS:,} points, got {len(points)} numbers")
    return Polygon(points)


def ellipse(x: float, y: float, radius_x: float, radius_y: float) -> Polygon:
    """Return an ellipse as a polygon."""
    angles = [2 * math.pi * i / N_ELLIPSE for i in range(N_ELLIPSE)]
    edge = [(x + radius_x * math.cos(a), y + radius_y * math.sin(a)) for a in angles]
    return polygon([number for point in edge for number in point])


def rotated_box(x0: float, y0: float, x1: float, y1: float, degrees: float) -> Polygon:
    """Return a box, turned clockwise around its first corner, as a polygon."""
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    corners = [(0.0, 0.0), (x1 - x0, 0.0), (x1 - x0, y1 - y0), (0.0, y1 - y0)]
    turned = [(x0 + dx * cos - dy * sin, y0 + dx * sin + dy * cos) for dx, dy in corners]
    return polygon([number for point in turned for number in point])


def run_lengths(
    counts: Sequence[Any],
    width: Any,
    height: Any,
    by_column: bool,
    offset: tuple[int, int] | None = None,
) -> RunLengths:
    """Return runs that fill an image of this size."""
    try:
        lengths = tuple(int(count) for count in counts)
        size = int(width), int(height)
    except (TypeError, ValueError, OverflowError):
        raise BadShapeError("expected whole numbers as run lengths") from None
    if min(size) < 1 or math.prod(size) > MAX_PIXELS:
        raise BadShapeError(f"run lengths of {size[0]} x {size[1]} pixels can't be used")
    if min(lengths, default=0) < 0 or sum(lengths) != math.prod(size):
        raise BadShapeError(
            f"run lengths sum to {sum(lengths):,}, but {size[0]} x {size[1]} pixels are "
            f"{math.prod(size):,}"
        )
    return RunLengths(lengths, *size, by_column, offset)


def draw_shapes(
    shapes: Sequence[Shape],
    drawn_on: tuple[float, float] | None,
    size: tuple[int, int],
) -> NDArray[np.bool_]:
    """Return (height, width) of an image of this `size`: True on any of the shapes.

    `drawn_on` is the width and height that the shapes refer to; None: those of the image.
    """
    width, height = size
    stretch = (1.0, 1.0) if drawn_on is None else (width / drawn_on[0], height / drawn_on[1])
    inside = np.zeros((height, width), dtype=np.bool_)
    for shape in shapes:
        if isinstance(shape, RunLengths):
            inside |= _runs(shape, drawn_on, size)
            continue
        if isinstance(shape, Polygon):
            numbers = shape.points
        else:
            x0, y0, x1, y1 = shape
            numbers = (x0, y0, x1, y0, x1, y1, x0, y1)
        points = np.array(numbers).reshape(-1, 2) * stretch
        inside |= _filled(points, size)
    return inside


def _filled(points: NDArray[np.float64], size: tuple[int, int]) -> NDArray[np.bool_]:
    """Return (height, width) with the pixels whose centre is inside a polygon, at least one.

    Along a row of pixels, each edge of the polygon turns inside into outside or back.
    """
    width, height = size
    turns = np.zeros((height, width + 1), dtype=np.uint8)
    for (xa, ya), (xb, yb) in zip(points, np.roll(points, -1, axis=0), strict=True):
        (x0, y0), (x1, y1) = ((xa, ya), (xb, yb)) if ya <= yb else ((xb, yb), (xa, ya))
        first, end = np.clip(np.ceil([y0 - 0.5, y1 - 0.5]), 0, height).astype(np.int64)
        if first >= end:
            continue
        rows = np.arange(first, end)
        crossing = x0 + (rows + 0.5 - y0) * (x1 - x0) / (y1 - y0)
        columns = np.clip(np.ceil(crossing - 0.5), 0, width).astype(np.int64)
        turns[rows, columns] ^= 1
    inside = np.bitwise_xor.accumulate(turns, axis=1)[:, :width].astype(np.bool_)
    if not inside.any():  # thinner than a pixel
        column, row = np.floor(points.mean(0)).astype(np.int64)
        if 0 <= row < height and 0 <= column < width:
            inside[row, column] = True
    return inside


def _runs(
    shape: RunLengths, drawn_on: tuple[float, float] | None, size: tuple[int, int]
) -> NDArray[np.bool_]:
    """Return (height, width): run lengths as a mask of an image of this size."""
    inside = np.repeat(np.arange(len(shape.counts)) % 2 == 1, shape.counts)
    if shape.by_column:
        pixels = inside.reshape(shape.width, shape.height).T
    else:
        pixels = inside.reshape(shape.height, shape.width)
    own = Image.fromarray(np.ascontiguousarray(pixels).astype(np.uint8))
    if shape.offset is not None:
        page = Image.new("L", _whole(drawn_on, size), 0)
        page.paste(own, shape.offset)
        own = page
    if own.size != size:
        own = own.resize(size, Image.Resampling.NEAREST)
    return np.asarray(own, dtype=np.bool_)


def _whole(drawn_on: tuple[float, float] | None, size: tuple[int, int]) -> tuple[int, int]:
    whole = size if drawn_on is None else (round(drawn_on[0]), round(drawn_on[1]))
    if math.prod(whole) > MAX_PIXELS:
        raise LupiError(f"a mask of an image of {whole[0]} x {whole[1]} pixels can't be used")
    return whole


def _finite(numbers: Any, n: int | None) -> tuple[float, ...]:
    try:
        values = tuple(float(number) for number in numbers)
    except (TypeError, ValueError, OverflowError):
        values = ()
    if not values or (n is not None and len(values) != n) or not all(map(math.isfinite, values)):
        raise BadShapeError(f"expected {n or 'some'} numbers, got {str(numbers)[:80]}")
    return values
