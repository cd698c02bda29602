"""The index of a source: items with labels and regions, and class names."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

from lupi.errors import LupiError
from lupi.facts import Fact
from lupi.loaders.findings import Findings
from lupi.loaders.images.annotations.shapes import Box, Polygon, RunLengths
from lupi.loaders.images.layouts.trees import Tree

Part = Literal["train", "val", "test"]
PARTS: tuple[Part, ...] = get_args(Part)

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm")


@dataclass(frozen=True, slots=True)
class Item:
    """An image that has not been read yet."""

    name: str
    label: str
    part: Part = "train"
    """Part in the source; val and test are held out of train if it has none."""
    boxes: tuple[Box, ...] = ()
    boxes_size: tuple[float, float] | None = None
    """Width and height that boxes and outlines refer to; None: those of the image itself."""
    outlines: tuple[Polygon | RunLengths, ...] = ()
    """Regions that are not boxes."""
    masks: tuple[str, ...] = ()
    """Names of images that are not black on the object; a pixel of any counts."""
    mask_values: tuple[int, ...] | None = None
    """Values of the masks on the object; None: all but black."""
    nothing: bool = False
    """Whether annotators looked and found nothing: the region is empty."""
    group: str | None = None
    """Images of one group are never divided between training and test."""

    @property
    def key(self) -> int:
        """64-bit hash of the name, the same on every machine."""
        name = self.name.encode(errors="surrogateescape")  # a name need not be UTF-8
        return int.from_bytes(hashlib.sha256(name).digest()[:8], "big")

    @property
    def has_region(self) -> bool:
        """Whether there is x* for this image."""
        return bool(self.boxes or self.outlines or self.masks or self.nothing)


@dataclass(frozen=True, slots=True)
class Index:
    """All images of a source, none of them read yet."""

    items: list[Item]
    classes: list[str]
    layout: tuple[Fact, ...] = ()
    """How the files were understood."""


class Source(Protocol):
    """A layout of files that can be listed."""

    def index(self, tree: Tree, findings: Findings) -> Index:
        """List the images, and add errors in the annotations to `findings`."""
        ...


def has_image_suffix(name: str) -> bool:
    """Return whether a file is an image, by its suffix."""
    return name.lower().endswith(IMAGE_SUFFIXES)


def is_image(name: str, findings: Findings) -> bool:
    """Return whether a file is an image, by its suffix; report any other file."""
    if has_image_suffix(name):
        return True
    findings.add(name, "not an image", f"expected one of {', '.join(IMAGE_SUFFIXES)}")
    return False


def pick_classes(
    index: Index, wanted: int | Sequence[str] | None, findings: Findings
) -> tuple[list[str], list[Item]]:
    """Return the wanted classes (the first n, or by name) that have images, and their items."""
    known = index.classes
    if isinstance(wanted, int):
        if wanted > len(known):
            raise LupiError(f"task.classes: got {wanted}, but there are {len(known)} classes")
        chosen = known[:wanted]
    else:
        chosen = list(known if wanted is None else wanted)
    if unknown := [name for name in chosen if name not in set(known)]:
        raise LupiError(
            f"task.classes: {unknown[0]!r} is not a class; there are {len(known)}, "
            f"such as {', '.join(known[:3])}"
        )
    if len(set(chosen)) < len(chosen):
        raise LupiError("task.classes: duplicate class name")
    trained = Counter(item.label for item in index.items if item.part == "train")
    for name in chosen:
        if not trained[name]:
            findings.add(name, "empty class", "it has no training images")
    classes = [name for name in chosen if trained[name]]
    if len(classes) < 2:
        raise LupiError(f"a task needs at least two classes with images, got {classes}")
    kept = set(classes)
    return classes, [item for item in index.items if item.label in kept]
