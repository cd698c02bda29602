"""Boxes in PASCAL-style XML, as ImageNet's localisation data have them.

    <annotation>
      <size><width>500</width><height>375</height></size>
      <object><name>n01440764</name>
        <bndbox><xmin>90</xmin><ymin>60</ymin><xmax>410</xmax><ymax>300</ymax></bndbox>
      </object> …

Read by expat directly, which lets a document type be refused before it can declare entities.
The numbers are taken as edges: a box is as wide as xmax - xmin. Files of ImageNet count from 0 or
from 1 and include the last pixel or not; no reading fits all, and they differ by one pixel.
"""

import math
from typing import NamedTuple
from xml.parsers import expat

from lupi.loaders.images.layouts.index import Box

EDGES = ("xmin", "ymin", "xmax", "ymax")


class BadXmlError(Exception):
    """An XML file that is not a valid annotation."""


class Annotation(NamedTuple):
    """The content of an XML file."""

    boxes: tuple[Box, ...]
    size: tuple[float, float] | None
    """Width and height that the boxes refer to."""


def read_annotation(data: bytes) -> Annotation:
    """Return all boxes of an annotation, whatever their objects are called."""
    reader = _Reader()
    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = _refuse_doctype
    parser.StartElementHandler = reader.start
    parser.CharacterDataHandler = reader.text
    parser.EndElementHandler = reader.end
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise BadXmlError(f"not well-formed XML: {error}") from None
    width, height = reader.size.get("width", 0), reader.size.get("height", 0)
    return Annotation(tuple(reader.boxes), (width, height) if width > 0 and height > 0 else None)


def _refuse_doctype(*_: object) -> None:
    raise BadXmlError("it declares a document type, which is not allowed")


class _Reader:
    """Collects numbers while expat parses a document."""

    def __init__(self) -> None:
        self.boxes: list[Box] = []
        self.size: dict[str, float] = {}
        self._edges: dict[str, float] = {}
        self._path: list[str] = []
        self._text = ""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._path.append(tag)
        self._text = ""
        if tag == "bndbox":
            self._edges = {}

    def text(self, text: str) -> None:
        self._text += text

    def end(self, tag: str) -> None:
        self._path.pop()
        inside = self._path[-1] if self._path else ""
        if inside == "bndbox" and tag in EDGES:
            self._edges[tag] = self._number(tag)
        elif inside == "size" and tag in ("width", "height"):
            self.size[tag] = self._number(tag)
        elif tag == "bndbox":
            if missing := [edge for edge in EDGES if edge not in self._edges]:
                raise BadXmlError(f"a bndbox has no {missing[0]}")
            x0, y0, x1, y1 = (self._edges[edge] for edge in EDGES)
            self.boxes.append((x0, y0, x1, y1))
        self._text = ""

    def _number(self, tag: str) -> float:
        try:
            number = float(self._text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise BadXmlError(f"{tag} must be a number, got {self._text.strip()!r}")
        return number
