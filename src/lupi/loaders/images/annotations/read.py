"""Read annotations of images, in whatever format they are."""

import csv
import io
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from lupi.errors import LupiError
from lupi.loaders.files import N_SNIFFED, column_names, find_separator, rows_in, suffix_of
from lupi.loaders.findings import Findings
from lupi.loaders.images.annotations.coco import is_coco, read_coco
from lupi.loaders.images.annotations.cvat import read_cvat
from lupi.loaders.images.annotations.label_studio import is_label_studio, read_label_studio
from lupi.loaders.images.annotations.shapes import Annotation, BadShapeError, box
from lupi.loaders.images.annotations.voc import read_voc
from lupi.loaders.images.annotations.xml import BadXmlError, read_xml
from lupi.loaders.images.annotations.yolo import class_names, is_yolo, read_yolo
from lupi.loaders.images.names import ANNOTATION_FOLDERS, ImageNames, logical_path
from lupi.loaders.images.trees import Tree, read_text

Format = Literal["COCO", "Label Studio", "CVAT", "PASCAL VOC", "YOLO", "CSV"]
FORMATS: tuple[Format, ...] = get_args(Format)
FILE_COLUMNS = ("file", "filename", "file_name", "image", "path", "name", "image_id")
LABEL_COLUMNS = ("label", "class", "category", "target")
EDGES = (("x0", "y0", "x1", "y1"), ("xmin", "ymin", "xmax", "ymax"), ("x1", "y1", "x2", "y2"))


@dataclass(frozen=True, slots=True)
class Annotations:
    """Files of one format."""

    format: Format
    files: tuple[str, ...]

    @property
    def about(self) -> str:
        """The format, and the file or how many."""
        if len(self.files) == 1:
            return f"{self.files[0]} ({self.format})"
        ending = {"PASCAL VOC": ".xml files", "YOLO": ".txt files"}.get(self.format, "files")
        return f"{len(self.files):,} {ending} ({self.format})"


def find_annotations(tree: Tree, names: ImageNames, path: str | None = None) -> list[Annotations]:
    """Return the annotations below the root by format; `path` is a file or folder to look in."""
    if path is not None and path in tree.names:
        files = [path]
    else:
        start = "" if path in (None, ".") else f"{path}/"
        files = [name for name in tree.names if name.startswith(start)]
    found: dict[Format, list[str]] = {name: [] for name in FORMATS}
    for file in files:
        kind = _format(tree, file, names, is_named=path == file)
        if kind is not None:
            found[kind].append(file)
    return [Annotations(name, tuple(some)) for name, some in found.items() if some]


def _format(tree: Tree, file: str, names: ImageNames, is_named: bool) -> Format | None:
    """Return the format of a file; None if it is not a file of annotations."""
    lower = file.lower()
    if lower.endswith(".json"):
        content = _json(tree, file, is_named)
        if is_coco(content):
            return "COCO"
        if is_label_studio(content):
            return "Label Studio"
        if is_named:
            raise LupiError(
                f"{file} is neither COCO JSON, with `images` and `annotations`, nor an export of "
                "images from Label Studio (JSON or JSON-MIN)"
            )
    elif lower.endswith(".xml"):
        if names.of_stem(logical_path(file, ANNOTATION_FOLDERS)):
            return "PASCAL VOC"
        try:
            tag = read_xml(tree.read(file)).tag
        except (BadXmlError, OSError):
            tag = ""
        return "CVAT" if tag == "annotations" else "PASCAL VOC" if tag == "annotation" else None
    elif lower.endswith(".txt"):
        if names.of_stem(logical_path(file, ANNOTATION_FOLDERS)) and is_yolo(read_text(tree, file)):
            return "YOLO"
    elif lower.endswith(".csv"):
        columns = header(tree, file)
        if is_named or (_one_of(FILE_COLUMNS, columns) and _edges(columns)):
            return "CSV"
    elif is_named:
        raise LupiError(
            f"task.boxes: {file} is not a format that is read: {', '.join(FORMATS)} are"
        )
    return None


def read_annotations(
    tree: Tree, given: Annotations, names: ImageNames, findings: Findings
) -> dict[str, Annotation]:
    """Return what annotations say about each image, by the image's name below the root."""
    found: dict[str, Annotation] = {}
    for name, one in _all(tree, given, names, findings):
        if one.problem:
            findings.add(one.where, "unreadable box", one.problem)
            if not one.shapes:
                continue
        if name in found:  # a line for each box
            before = found[name]
            one = one._replace(
                shapes=(*before.shapes, *one.shapes), labels=(*before.labels, *one.labels)
            )
        found[name] = one
    return found


def _all(
    tree: Tree, given: Annotations, names: ImageNames, findings: Findings
) -> Iterator[tuple[str, Annotation]]:
    classes = class_names(tree) if given.format == "YOLO" else {}
    for file in given.files:
        folder = file.rpartition("/")[0]
        if given.format in ("PASCAL VOC", "YOLO"):
            name = names.find_stem(logical_path(file, ANNOTATION_FOLDERS), file, findings)
            if name is None:
                continue
            if given.format == "YOLO":
                yield name, read_yolo(read_text(tree, file), name, file, classes)
                continue
            try:
                yield name, read_voc(tree.read(file), name, file)
            except (BadXmlError, OSError) as error:
                findings.add(file, "unreadable annotation", str(error))
            continue
        for one in _of_file(tree, file, given.format, findings):
            found = names.find(one.file, one.where, findings, folder)
            if found is not None:
                yield found, one


def _of_file(tree: Tree, file: str, kind: Format, findings: Findings) -> Iterator[Annotation]:
    if kind == "COCO":
        yield from read_coco(_json(tree, file, is_needed=True), file)
    elif kind == "Label Studio":
        yield from read_label_studio(_json(tree, file, is_needed=True), file)
    elif kind == "CVAT":
        try:
            yield from read_cvat(read_xml(tree.read(file)), file)
        except (BadXmlError, OSError) as error:
            findings.add(file, "unreadable annotation", str(error))
    else:
        yield from _csv(tree, file)


def _csv(tree: Tree, path: str) -> Iterator[Annotation]:
    columns = header(tree, path)
    file, edges = _one_of(FILE_COLUMNS, columns), _edges(columns)
    if not file or not edges:
        raise LupiError(
            f"{path} has no column {'file' if not file else 'x0'!r}; its first line should name "
            f"file, x0, y0, x1, y1, it names {', '.join(columns) or 'nothing'}"
        )
    label = _one_of(LABEL_COLUMNS, columns)
    for where, row in read_table(tree, path, (file, *edges)):
        labels = (row[label].strip(),) if label and row.get(label, "").strip() else ()
        try:
            yield Annotation(where, row[file], (box([row[e] for e in edges]),), None, labels)
        except BadShapeError as error:
            yield Annotation(where, row[file], (), None, labels, str(error))


def header(tree: Tree, path: str) -> list[str]:
    """Return the names of the columns of a CSV; none for an empty file."""
    lines = [line for line in read_text(tree, path).splitlines()[:N_SNIFFED] if line.strip()]
    if not lines:
        return []
    try:
        fields = next(csv.reader(lines, delimiter=find_separator(lines, suffix_of(path))), [])
    except csv.Error:
        return []
    return column_names(fields)


def read_table(
    tree: Tree, path: str, columns: Sequence[str]
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the rows of a CSV or JSON lines file, each with its position."""
    content = io.BytesIO(read_text(tree, path).encode())
    for row in rows_in(content, path, columns, None):
        cells = {name: "" if cell is None else str(cell) for name, cell in row.cells.items()}
        yield f"{path}, row {row.number}", dict.fromkeys(columns, "") | cells


def file_column(columns: Sequence[str]) -> str | None:
    """Return the column of a CSV that names images."""
    return _one_of(FILE_COLUMNS, columns)


def label_column(columns: Sequence[str]) -> str | None:
    """Return the column of a CSV that names classes."""
    return _one_of(LABEL_COLUMNS, columns)


def _one_of(wanted: Sequence[str], columns: Sequence[str]) -> str | None:
    lower = {name.lower(): name for name in reversed(columns)}
    return next((lower[name] for name in wanted if name in lower), None)


def _edges(columns: Sequence[str]) -> list[str] | None:
    lower = {name.lower(): name for name in columns}
    for names in EDGES:
        if all(name in lower for name in names):
            return [lower[name] for name in names]
    return None


def _json(tree: Tree, path: str, is_needed: bool) -> Any:
    try:
        return json.loads(read_text(tree, path), parse_constant=lambda _: math.nan)
    except (ValueError, RecursionError) as error:
        if is_needed:
            raise LupiError(f"{path} is not JSON: {type(error).__name__} {error}") from None
        return None
