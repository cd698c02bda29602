"""YOLO's text files: one per image, of its name with .txt.

    0 0.5 0.4 0.2 0.1                     class, centre x, centre y, width, height
    2 0.1 0.1 0.5 0.1 0.5 0.6 0.1 0.6     class and the points of a polygon

All numbers are fractions of the image. An empty file says that there is nothing in the image. Names
of classes come from data.yaml, classes.txt or obj.names; otherwise they are numbers.
"""

import re
from collections.abc import Mapping

from lupi.errors import LupiError
from lupi.loaders.images.annotations.shapes import (
    Annotation,
    BadShapeError,
    Box,
    Polygon,
    Shape,
    box,
    polygon,
)
from lupi.loaders.images.trees import Tree, read_text
from lupi.settings import load_plain

LINE = re.compile(r"\s*\d+(\s+-?[\d.]+(e-?\d+)?){4,}\s*", re.I)
NAMES = ("data.yaml", "dataset.yaml", "data.yml")
LISTS = ("classes.txt", "obj.names", "labels.txt", "names.txt")


def is_yolo(text: str) -> bool:
    """Return whether a text file looks like YOLO's, by its first line; an empty one may be."""
    lines = text.strip().splitlines()
    return not lines or LINE.fullmatch(lines[0]) is not None


def read_yolo(text: str, file: str, path: str, names: Mapping[int, str]) -> Annotation:
    """Return what a text file says about its image."""
    shapes: list[Shape] = []
    labels: list[str] = []
    where, problem = path, ""
    for number, line in enumerate(text.splitlines(), start=1):
        if not (cells := line.split()):
            continue
        try:
            shapes.append(_shape(cells[1:]))
            labels.append(names.get(int(cells[0]), cells[0]))
        except (BadShapeError, ValueError) as error:
            where, problem = f"{path}, line {number}", str(error)
    return Annotation(where, file, tuple(shapes), (1.0, 1.0), tuple(labels), problem)


def class_names(tree: Tree) -> dict[int, str]:
    """Return the names of classes by number; none if no file has them."""
    by_last = {name.rpartition("/")[2].lower(): name for name in reversed(tree.names)}
    for last in NAMES:
        if last in by_last:
            return _from_yaml(read_text(tree, by_last[last]), by_last[last])
    for last in LISTS:
        if last in by_last:
            lines = read_text(tree, by_last[last]).splitlines()
            return {i: line.strip() for i, line in enumerate(lines) if line.strip()}
    return {}


def _from_yaml(text: str, path: str) -> dict[int, str]:
    try:
        content = load_plain(text)
        names = content.get("names", []) if isinstance(content, dict) else []
        pairs = names.items() if isinstance(names, dict) else enumerate(names)
        return {int(number): str(name) for number, name in pairs}
    except (ValueError, TypeError) as error:
        raise LupiError(f"{path} has no names of classes that can be read: {error}") from None


def _shape(numbers: list[str]) -> Box | Polygon:
    if len(numbers) in (4, 5):  # a fifth number is how sure a model was
        x, y, width, height = box(numbers[:4])
        return x - width / 2, y - height / 2, x + width / 2, y + height / 2
    return polygon(numbers)
