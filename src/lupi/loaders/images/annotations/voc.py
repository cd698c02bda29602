"""PASCAL VOC XML, one file per image, as ImageNet's localisation data have it, too.

    <annotation>
      <size><width>500</width><height>375</height></size>
      <object><name>n01440764</name>
        <bndbox><xmin>90</xmin><ymin>60</ymin><xmax>410</xmax><ymax>300</ymax></bndbox>
      </object> …

The numbers are taken as edges: a box is as wide as xmax - xmin. Files count from 0 or from 1 and
include the last pixel or not; no reading fits all, and they differ by one pixel.
"""

import math
from xml.etree.ElementTree import Element

from lupi.loaders.images.annotations.shapes import Annotation, Box
from lupi.loaders.images.annotations.xml import BadXmlError, read_xml

EDGES = ("xmin", "ymin", "xmax", "ymax")


def read_voc(data: bytes, file: str = "", where: str = "") -> Annotation:
    """Return all boxes of an image, whatever their objects are called, and the objects' names."""
    root = read_xml(data)
    boxes: list[Box] = []
    for found in root.iter("bndbox"):
        x0, y0, x1, y1 = (_number(found, edge) for edge in EDGES)
        boxes.append((x0, y0, x1, y1))
    labels = tuple(name for one in root.iter("object") if (name := (one.findtext("name") or "")))
    size, known = root.find("size"), None
    if size is not None and size.find("width") is not None and size.find("height") is not None:
        width, height = _number(size, "width"), _number(size, "height")
        known = (width, height) if width > 0 and height > 0 else None
    return Annotation(where, file, tuple(boxes), known, labels)


def _number(parent: Element, tag: str) -> float:
    text = parent.findtext(tag)
    if text is None:
        raise BadXmlError(f"a {parent.tag} has no {tag}")
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise BadXmlError(f"{tag} must be a number, got {text.strip()!r}")
    return number
