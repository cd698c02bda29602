"""What a layout of files says: images with class, part, group and region, none of them read yet.

Which images a task uses (`ImageSelection`) and which of them are held out for validation and test
depends only on their names, so it is the same on every machine, and an image that is added later
replaces at most one other.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from lupi.errors import LupiError
from lupi.facts import Fact
from lupi.loaders.findings import Findings
from lupi.loaders.images.annotations.shapes import Box, Polygon, RunLengths, Shape
from lupi.loaders.images.decode import Fit
from lupi.loaders.images.trees import Tree
from lupi.subsets import PARTS, Part

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm")


class Item(NamedTuple):
    """An image that has not been read yet."""

    name: str
    label: str
    part: Part = "train"
    """Part in the source; val and test are held out of train if it has none."""
    shapes: tuple[Shape, ...] | None = None
    """Its region; empty: annotators looked and found nothing; None: not annotated."""
    shapes_size: tuple[float, float] | None = None
    """Width and height that shapes refer to; None: those of the image itself."""
    masks: tuple[str, ...] = ()
    """Names of images that are not black on the object; a pixel of any counts."""
    mask_values: tuple[int, ...] | None = None
    """Values of the masks on the object; None: all but black."""
    annotation: str | None = None
    """Name of a PASCAL VOC file with its boxes, which is read together with the image."""
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
        return self.shapes is not None or bool(self.masks) or self.annotation is not None

    @property
    def boxes(self) -> tuple[Box, ...]:
        """The shapes that are boxes."""
        shapes = self.shapes or ()
        return tuple(shape for shape in shapes if not isinstance(shape, Polygon | RunLengths))

    @property
    def needs_mask(self) -> bool:
        """Whether boxes can't describe the region."""
        return bool(self.masks) or len(self.boxes) < len(self.shapes or ())


@dataclass(frozen=True, slots=True)
class Index:
    """All images of a source."""

    items: list[Item]
    classes: list[str]
    layout: tuple[Fact, ...] = ()
    """How the files were understood."""


class Source(Protocol):
    """A layout of files that can be listed."""

    def index(self, tree: Tree, findings: Findings) -> Index:
        """List the images, and add errors in the annotations to `findings`."""
        ...


@dataclass(frozen=True, slots=True)
class ImageSelection:
    """The selected images of a source and their form; all of it is part of the cache's key."""

    source: str
    """The source with its own settings, as text."""
    side: int
    fit: Fit
    classes: int | tuple[str, ...] | None
    n_train: int | None
    n_val: int
    n_test: int
    annotated_only: bool

    def choose(
        self, index: Index, findings: Findings
    ) -> tuple[list[str], dict[Part, list[Item]], tuple[Part, ...]]:
        """Return the classes, the images of each part, and which parts were held out of train."""
        classes, items = pick_classes(index, self.classes, findings)
        parts = hold_out(items, self.n_val, self.n_test, self.n_train, self.annotated_only)
        given = {item.part for item in items}
        return classes, parts, tuple(part for part in PARTS[1:] if part not in given)


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


def hold_out(
    items: Sequence[Item],
    n_val: int,
    n_test: int,
    n_train: int | None = None,
    annotated_only: bool = False,
) -> dict[Part, list[Item]]:
    """Split items into train, val and test.

    Args:
        items: Of all classes.
        n_val: Validation images per class, held out if the source has none.
        n_test: Test images per class, held out if the source has none.
        n_train: Maximum number of training images per class; None: all that are left.
        annotated_only: Leave out training images without x*.
    """
    parts: dict[Part, list[Item]] = {"train": [], "val": [], "test": []}
    of_class: dict[str, list[Item]] = defaultdict(list)
    for item in items:
        if item.part == "train":
            of_class[item.label].append(item)
        else:
            parts[item.part].append(item)
    n_val = 0 if parts["val"] else n_val
    n_test = 0 if parts["test"] else n_test
    for label, members in of_class.items():
        order = sorted(members, key=lambda item: item.key)
        if len(order) <= n_val + n_test:
            raise LupiError(
                f"class {label} has {len(order)} training images; none is left after holding out "
                f"{n_val} for validation and {n_test} for test: lower task.n_val or task.n_test"
            )
        parts["test"] += order[:n_test]
        parts["val"] += order[n_test : n_test + n_val]
        rest = order[n_test + n_val :]
        if annotated_only:
            rest = [item for item in rest if item.has_region]
        parts["train"] += rest[:n_train]
    return parts
