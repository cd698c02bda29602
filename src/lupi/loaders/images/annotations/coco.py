"""COCO JSON: boxes, polygons and run lengths of many images in one file.

    {"images": [{"id", "file_name", "width", "height"}],
     "annotations": [{"image_id", "bbox": [x, y, width, height], "segmentation", "category_id"}],
     "categories": [{"id", "name"}]}

A segmentation is a list of polygons, or run lengths down the columns, plain or compressed. It is
used where it is given, else the box. Width and height of images, and categories, may be absent.
An image that is listed without annotations has an empty region: nothing was found in it.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from lupi.errors import LupiError
from lupi.loaders.images.annotations.shapes import (
    MAX_PIXELS,
    Annotation,
    BadShapeError,
    Shape,
    box,
    polygon,
    run_lengths,
)


def is_coco(content: Any) -> bool:
    """Return whether a JSON document looks like COCO."""
    return isinstance(content, dict) and {"images", "annotations"} <= content.keys()


def read_coco(content: Any, path: str) -> Iterator[Annotation]:
    """Yield what a document says about each image; `path` is its name, for messages."""
    try:
        images = {image["id"]: image for image in content["images"]}
        files = {key: str(image["file_name"]) for key, image in images.items()}
        names = {c["id"]: str(c["name"]) for c in content.get("categories") or ()}
        found = list(content["annotations"])
        of_image: dict[Any, list[tuple[int, dict[str, Any]]]] = defaultdict(list)
        for number, one in enumerate(found):
            of_image[one["image_id"]].append((number, one))
    except (KeyError, TypeError, AttributeError) as error:
        raise LupiError(f"{path} is not COCO JSON: {type(error).__name__} {error}") from None
    for image_id in of_image.keys() - images.keys():
        number, _ = of_image[image_id][0]
        yield Annotation(f"{path}, annotation {number}", f"image {image_id}")
    for image_id, image in images.items():
        shapes: list[Shape] = []
        labels: list[str] = []
        where, problem = f"{path}, image {image_id}", ""
        for number, one in of_image[image_id]:
            try:
                shapes += _shapes(one, image)
            except BadShapeError as error:
                where, problem = f"{path}, annotation {number}", str(error)
                continue
            category = one.get("category_id")
            if isinstance(category, int | str):
                labels.append(names.get(category, str(category)))
        yield Annotation(
            where, files[image_id], tuple(shapes), _size(image), tuple(labels), problem
        )


def _size(image: dict[str, Any]) -> tuple[float, float] | None:
    size = image.get("width"), image.get("height")
    known = all(isinstance(length, int | float) and 0 < length < MAX_PIXELS for length in size)
    return (float(size[0]), float(size[1])) if known else None  # type: ignore[arg-type]


def _shapes(one: dict[str, Any], image: dict[str, Any]) -> list[Shape]:
    """Return the segmentation of an annotation, or its box."""
    outline = one.get("segmentation")
    if isinstance(outline, list) and outline:
        if not isinstance(outline[0], list):  # some tools write one polygon without its list
            outline = [outline]
        return [polygon(points) for points in outline]
    if isinstance(outline, dict):
        counts, size = outline.get("counts"), outline.get("size")
        if not isinstance(size, list) or len(size) != 2:
            raise BadShapeError("run lengths without a size, [height, width]")
        height, width = size
        if isinstance(counts, str):
            counts = decompress(counts)
        if not isinstance(counts, list):
            raise BadShapeError("run lengths without counts")
        return [run_lengths(counts, width, height, by_column=True)]
    if "bbox" not in one:
        raise BadShapeError("neither a segmentation nor a bbox")
    x, y, width, height = box(one["bbox"])
    return [(x, y, x + width, y + height)]


def decompress(text: str) -> list[int]:
    """Return the run lengths that COCO writes as a text.

    Five bits a character, from code 48 on, the lowest first; 32 means that more follow, and 16 in
    the last is the sign. From the fourth on, a number is the difference to the one before the last.
    """
    counts: list[int] = []
    value = shift = 0
    for character in text:
        code = ord(character) - 48
        if not 0 <= code < 64 or shift > 60:
            raise BadShapeError("run lengths that can't be decompressed")
        value |= (code & 31) << shift
        shift += 5
        if code & 32:
            continue
        if code & 16:
            value -= 1 << shift
        counts.append(value + (counts[-2] if len(counts) > 2 else 0))
        value = shift = 0
    if shift:
        raise BadShapeError("run lengths that are cut off")
    return counts
