"""CVAT's `CVAT for images 1.1`: one XML file with boxes, polygons, ellipses, masks and tags.

    <annotations>
      <image id="0" name="cats/1.jpg" width="640" height="480">
        <box label="cat" xtl="1.0" ytl="2.0" xbr="30.0" ybr="40.0"/>
        <polygon label="cat" points="1.0,2.0;30.0,2.0;30.0,40.0"/>
        <mask label="cat" rle="3, 4, 3" left="5" top="6" width="5" height="2"/>
        <tag label="cat"/>
      </image> …

Tags are classes of whole images. Polylines, points and cuboids are not used.
"""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from lupi.loaders.images.annotations.shapes import (
    Annotation,
    BadShapeError,
    Shape,
    box,
    ellipse,
    polygon,
    run_lengths,
)

NOT_USED = ("polyline", "points", "cuboid", "skeleton")


def read_cvat(root: Element, path: str) -> Iterator[Annotation]:
    """Yield what a file says about each image."""
    for image in root.iter("image"):
        name = image.get("name", "")
        shapes: list[Shape] = []
        labels: list[str] = []
        problem = ""
        for one in image:
            try:
                shapes += _shape(one)
            except BadShapeError as error:
                problem = f"{one.tag}: {error}"
                continue
            if one.tag in NOT_USED:
                problem = f"a {one.tag} is not a region"
            elif label := one.get("label"):
                labels.append(label)
        yield Annotation(
            f"{path}, image {name}", name, tuple(shapes), _size(image), tuple(labels), problem
        )


def _size(image: Element) -> tuple[float, float] | None:
    try:
        width, height = float(image.get("width", 0)), float(image.get("height", 0))
    except ValueError:
        return None
    return (width, height) if width > 0 and height > 0 else None


def _shape(one: Element) -> list[Shape]:
    if one.tag == "box":
        return [box([one.get(edge) for edge in ("xtl", "ytl", "xbr", "ybr")])]
    if one.tag == "polygon":
        pairs = one.get("points", "").split(";")
        return [polygon([number for pair in pairs for number in pair.split(",")])]
    if one.tag == "ellipse":
        x, y, rx, ry = box([one.get(key) for key in ("cx", "cy", "rx", "ry")])
        return [ellipse(x, y, rx, ry)]
    if one.tag == "mask":
        left, top, width, height = box([one.get(k) for k in ("left", "top", "width", "height")])
        counts = one.get("rle", "").split(",")
        corner = round(left), round(top)
        return [run_lengths(counts, width, height, by_column=False, offset=corner)]
    return []
