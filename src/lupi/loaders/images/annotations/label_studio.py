"""Label Studio's exports of images: JSON and JSON-MIN.

JSON is a list of tasks with `data` and `annotations`, JSON-MIN a list of rows with the results
under the name of their control. Coordinates are percentages of the image. Rectangles, polygons,
ellipses and brush strokes are regions, choices the class of the image. The last annotation of a
task that was not cancelled counts.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import numpy as np
from numpy.typing import NDArray

from lupi.loaders.images.annotations.shapes import (
    MAX_PIXELS,
    Annotation,
    BadShapeError,
    RunLengths,
    Shape,
    box,
    ellipse,
    polygon,
    rotated_box,
)

IMAGE = re.compile(r"\.(jpe?g|png|bmp|gif|webp|tiff?|ppm)(\?.*)?$", re.I)
UPLOAD = re.compile(r"^[0-9a-f]{8}-")
"""What Label Studio puts before the names of uploaded files."""


def is_label_studio(content: Any) -> bool:
    """Return whether a JSON document is a Label Studio export of images."""
    if not isinstance(content, list) or not content or not isinstance(content[0], dict):
        return False
    first = content[0]
    fields = first["data"] if isinstance(first.get("data"), dict) else first
    is_export = "data" in first or any(_results(value) for value in first.values())
    return is_export and _image_of(fields) is not None


def read_label_studio(content: list[Any], path: str) -> Iterator[Annotation]:
    """Yield what an export says about each image."""
    for number, task in enumerate(content):
        where = f"{path}, task {number}"
        if not isinstance(task, dict):
            continue
        data = task.get("data")
        file = _image_of(data if isinstance(data, dict) else task)
        if file is None:
            continue
        results, is_done = _of_task(task) if isinstance(data, dict) else (_of_row(task), True)
        if not is_done:
            continue
        shapes: list[Shape] = []
        labels: list[str] = []
        problem = ""
        for result in results:
            try:
                shapes += _shape(result)
            except BadShapeError as error:
                problem = str(error)
                continue
            labels += _labels(result)
        yield Annotation(where, file, tuple(shapes), (100.0, 100.0), tuple(labels), problem)


def plain_name(given: str) -> str:
    """Return the name of a file from the address that Label Studio has for it."""
    try:
        parts = urlsplit(given)
    except ValueError:  # such as "http://[": a name, not an address
        return given
    local = parse_qs(parts.query).get("d")
    path = local[0] if local else unquote(parts.path)
    folder, slash, last = path.rpartition("/")
    if "/upload/" in f"/{folder}/":
        return UPLOAD.sub("", last)
    return f"{folder}{slash}{last}".lstrip("/")


def _image_of(fields: Mapping[str, Any]) -> str | None:
    for value in fields.values():
        if isinstance(value, str) and IMAGE.search(value):
            return plain_name(value)
    return None


def _of_task(task: Mapping[str, Any]) -> tuple[list[dict[str, Any]], bool]:
    """Return the results of the last annotation, and whether there is one."""
    every = task.get("annotations", task.get("completions"))
    done = [
        one
        for one in (every if isinstance(every, list) else [])
        if isinstance(one, dict) and not one.get("was_cancelled")
    ]
    if not done:
        return [], False
    results = done[-1].get("result")
    flat = []
    for one in results if isinstance(results, list) else []:
        if isinstance(one, dict) and isinstance(one.get("value"), dict):
            size = {k: one[k] for k in ("original_width", "original_height") if k in one}
            flat.append({**one["value"], **size})
    return flat, True


def _of_row(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the results of a row of JSON-MIN."""
    flat: list[dict[str, Any]] = []
    for key, value in row.items():
        flat += _results(value)
        if key in ("choice", "choices", "class") and isinstance(value, str):
            flat.append({"choices": [value]})
    return flat


def _results(value: Any) -> list[dict[str, Any]]:
    """Return the regions under a key of JSON-MIN, if these are some."""
    rows = value if isinstance(value, list) else []
    return [one for one in rows if isinstance(one, dict) and "original_width" in one]


def _labels(result: Mapping[str, Any]) -> list[str]:
    for key, value in result.items():
        if (key.endswith("labels") or key == "choices") and isinstance(value, list):
            return [str(label) for label in value]
    return []


def _shape(result: Mapping[str, Any]) -> list[Shape]:
    """Return the region of a result in percentages; none for a choice or a key point."""
    if "points" in result:
        try:
            return [polygon([number for x, y in result["points"] for number in (x, y)])]
        except (TypeError, ValueError):
            raise BadShapeError("a polygon with points that are not pairs") from None
    if "radiusX" in result:
        x, y, rx, ry = box([result.get(k) for k in ("x", "y", "radiusX", "radiusY")])
        return [ellipse(x, y, rx, ry)]
    if "rle" in result:
        return [_brush(result)]
    if "width" in result and "height" in result and "x" in result:
        x, y, width, height = box([result.get(k) for k in ("x", "y", "width", "height")])
        turned = result.get("rotation") or 0
        if turned and "original_width" in result:  # a turn keeps lengths in pixels
            wide, high = (pixels / 100 for pixels in _size(result))
            if not isinstance(turned, int | float) or not abs(turned) <= 360:
                raise BadShapeError(f"a box turned by {turned!r} degrees")
            edges = x * wide, y * high, (x + width) * wide, (y + height) * high
            points = rotated_box(*edges, float(turned)).points
            scaled = [number / (wide, high)[i % 2] for i, number in enumerate(points)]
            return [polygon(scaled)]
        return [(x, y, x + width, y + height)]
    return []


def _brush(result: Mapping[str, Any]) -> RunLengths:
    """Return a brush stroke: packed runs of RGBA bytes, on the object where not transparent."""
    width, height = _size(result)
    values = unpack(result["rle"], 4 * width * height)
    inside = values[3::4] > 0
    edges = np.flatnonzero(np.diff(inside, prepend=False)).tolist()
    counts = np.diff([0, *edges, len(inside)]).tolist()
    return RunLengths(tuple(counts), width, height, by_column=False)


def _size(result: Mapping[str, Any]) -> tuple[int, int]:
    """Return the size of the image in pixels."""
    width, height = result.get("original_width"), result.get("original_height")
    if not (isinstance(width, int) and isinstance(height, int)) or min(width, height) < 1:
        raise BadShapeError("a region without original_width and original_height")
    if width * height > MAX_PIXELS:
        raise BadShapeError(f"a region of an image of {width} x {height} pixels")
    return width, height


def unpack(packed: Any, n_values: int) -> NDArray[np.uint8]:
    """Return the bytes that a brush stroke packs as bits.

    32 bits for their number, 5 for the size of one less 1, 4 times 4 for the sizes of lengths less
    1; then, again and again: 1 bit (a run, or single values), 2 for which size, a length less 1,
    and the value of the run or the values.
    """
    try:
        data = bytes(list(packed))  # a number would be that many zeros
    except (TypeError, ValueError):
        raise BadShapeError("a brush stroke that is not a list of bytes") from None
    bits = np.unpackbits(np.frombuffer(data, np.uint8)).tolist()
    position = 0

    def read(n: int) -> int:
        nonlocal position
        if position + n > len(bits):
            raise BadShapeError("a brush stroke that is cut off")
        value = 0
        for bit in bits[position : position + n]:
            value = 2 * value + bit
        position += n
        return value

    if read(32) != n_values:
        raise BadShapeError("a brush stroke of another size than its image")
    word = read(5) + 1
    if word != 8:
        raise BadShapeError(f"a brush stroke of {word}-bit values")
    sizes = [read(4) + 1 for _ in range(4)]
    out = np.zeros(n_values, np.uint8)
    i = 0
    while i < n_values:
        is_run = read(1)
        end = i + 1 + read(sizes[read(2)])
        if end > n_values:
            raise BadShapeError("a brush stroke that is longer than its image")
        if is_run:
            out[i:end] = read(word)
        else:
            out[i:end] = [read(word) for _ in range(end - i)]
        i = end
    return out
