"""Boxes of many images: in one file, a CSV or COCO JSON, or in a folder of PASCAL VOC XML.

    CSV   columns file, x0, y0, x1, y1: pixels, end excluded; a line for each box
    COCO  {"images": [{"id", "file_name", "width", "height"}],
           "annotations": [{"image_id", "bbox": [x, y, width, height]}]}
          (categories and segmentations are not used; width and height may be absent)
    VOC   a file for each image, of its name with .xml: see pascal.py

Images are named by their path below the root, or by its last part where that is unique; in VOC
without their suffix.
"""

import io
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from lupi.errors import LupiError
from lupi.loaders.files import rows_in
from lupi.loaders.findings import Findings
from lupi.loaders.images.layouts.index import Box
from lupi.loaders.images.layouts.pascal import BadXmlError, read_annotation
from lupi.loaders.images.layouts.trees import Tree, read_text

VOC = ".xml"


class Boxes(NamedTuple):
    """The boxes of one image."""

    boxes: tuple[Box, ...] = ()
    size: tuple[float, float] | None = None
    """Width and height that they refer to; None: those of the image."""


class ImageNames:
    """Finds images by the names that a file uses for them."""

    def __init__(self, names: Iterable[str]) -> None:
        self._by_last_part: dict[str, list[str]] = defaultdict(list)
        self._by_stem: dict[str, list[str]] = defaultdict(list)
        self._names = set(names)
        for name in sorted(self._names):
            self._by_last_part[name.rpartition("/")[2]].append(name)
            path = PurePosixPath(name).with_suffix("")
            for start in range(len(path.parts)):  # cats/1 and 1 of images/cats/1.jpg
                self._by_stem["/".join(path.parts[start:])].append(name)

    def find_stem(self, given: str, where: str, findings: Findings) -> str | None:
        """Return the image for a path without suffix, by the longest end that matches."""
        parts = given.split("/")
        for start in range(len(parts)):
            matches = self._by_stem.get("/".join(parts[start:]), [])
            if len(matches) == 1:
                return matches[0]
            if matches:
                detail = f"{len(matches)} images are named {'/'.join(parts[start:])}"
                findings.add(where, "ambiguous image", detail)
                return None
        findings.add(where, "missing image", f"no image below the root is named {parts[-1]}.*")
        return None

    def find(self, given: str, where: str, findings: Findings) -> str | None:
        """Return the image of that name; report if there is none, or more than one."""
        if given in self._names:
            return given
        matches = self._by_last_part.get(given, [])
        if len(matches) == 1:
            return matches[0]
        if matches:
            detail = f"{len(matches)} images are named {given}: use their path below the root"
            findings.add(where, "ambiguous image", detail)
        else:
            findings.add(where, "missing image", f"{given!r} does not exist below the root")
        return None


def read_boxes(tree: Tree, path: str, names: ImageNames, findings: Findings) -> dict[str, Boxes]:
    """Return the boxes of each image, from a file or from a folder of files."""
    if path in (".", *tree.folders):
        return dict(_voc(tree, path, names, findings))
    read = _coco if path.lower().endswith(".json") else _csv
    found: dict[str, Boxes] = {}
    for where, given, numbers, size in read(tree, path):
        name = names.find(given, where, findings)
        if name is None:
            continue
        box = _box(numbers)
        if box is None:
            findings.add(where, "unreadable box", f"expected four numbers, got {numbers}")
            continue
        found[name] = Boxes((*found.get(name, Boxes()).boxes, box), size)
    return found


Line = tuple[str, str, Any, tuple[float, float] | None]
"""Position in the file, name of the image, edges of the box, and size they refer to."""


def _csv(tree: Tree, path: str) -> Iterator[Line]:
    for where, row in read_table(tree, path, ("file", "x0", "y0", "x1", "y1")):
        yield where, row["file"], [row[key] for key in ("x0", "y0", "x1", "y1")], None


def _coco(tree: Tree, path: str) -> Iterator[Line]:
    try:
        content = json.loads(read_text(tree, path))
        images = {image["id"]: image for image in content["images"]}
        files = {key: str(image["file_name"]) for key, image in images.items()}
        annotations = [
            (a["image_id"], images.get(a["image_id"]), a["bbox"]) for a in content["annotations"]
        ]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise LupiError(f"{path} is not COCO JSON: {type(error).__name__} {error}") from None
    for number, (image_id, image, bbox) in enumerate(annotations):
        where = f"{path}, annotation {number}"
        if image is None:
            yield where, f"image {image_id}", bbox, None
            continue
        edges = bbox
        if isinstance(bbox, list) and len(bbox) == 4 and _box(bbox) is not None:
            x, y, width, height = bbox
            edges = [x, y, x + width, y + height]
        size = image.get("width"), image.get("height")
        known = all(isinstance(length, (int, float)) and length > 0 for length in size)
        yield where, files[image_id], edges, size if known else None


def _voc(
    tree: Tree, folder: str, names: ImageNames, findings: Findings
) -> Iterator[tuple[str, Boxes]]:
    start = "" if folder == "." else f"{folder}/"
    files = [n for n in tree.names if n.startswith(start) and n.lower().endswith(VOC)]
    if not files:
        raise LupiError(f"task.boxes: folder {folder} below {tree.root} has no {VOC} files")
    for file in files:
        name = names.find_stem(file.removeprefix(start)[: -len(VOC)], file, findings)
        if name is None:
            continue
        try:
            yield name, Boxes(*read_annotation(tree.read(file)))
        except (BadXmlError, OSError) as error:
            findings.add(file, "unreadable annotation", str(error))


def read_table(
    tree: Tree, path: str, columns: tuple[str, ...]
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the rows of a CSV or JSON lines file, each with its position."""
    content = io.BytesIO(read_text(tree, path).encode())
    for row in rows_in(content, path, columns, None):
        cells = {name: "" if cell is None else str(cell) for name, cell in row.cells.items()}
        yield f"{path}, row {row.number}", dict.fromkeys(columns, "") | cells


def _box(numbers: Any) -> Box | None:
    try:
        x0, y0, x1, y1 = (float(number) for number in numbers)
    except (TypeError, ValueError, OverflowError):
        return None
    return (x0, y0, x1, y1) if all(map(math.isfinite, (x0, y0, x1, y1))) else None
