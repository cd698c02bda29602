"""Tiny ImageNet: 64x64 images with one box each, in the official layout.

    wnids.txt                      one class per line
    train/<wnid>/images/*.JPEG
    train/<wnid>/<wnid>_boxes.txt  file, x0, y0, x1, y1
    val/images/*.JPEG
    val/val_annotations.txt        file, wnid, x0, y0, x1, y1

Columns are separated by tabs and boxes include their last pixel: a box 0 0 63 63 is the whole
image. The official validation images are the test set here, as the official test set has no
labels; validation images are held out of train.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import Literal

from lupi.core import TaskKind
from lupi.errors import LupiError
from lupi.loaders.findings import Findings
from lupi.loaders.images.annotations.shapes import Box
from lupi.loaders.images.index import Index, Item, is_image
from lupi.loaders.images.trees import Tree, read_text, subfolders
from lupi.tasks.images.image_files import AugmentSettings, ImageFilesSettings, load_image_files
from lupi.tasks.images.network import ImageNetworkSettings

VAL_LIST = "val/val_annotations.txt"


@dataclass(frozen=True)
class TinyImagenet:
    """The official layout."""

    def index(self, tree: Tree, findings: Findings) -> Index:
        """List train, and val as test, whose boxes are for an oracle only."""
        names = set(tree.names)
        if missing := [name for name in ("wnids.txt", VAL_LIST) if name not in names]:
            raise LupiError(
                f"task.root: {tree.root} is not laid out as Tiny ImageNet: it has no {missing[0]}"
            )
        classes = read_text(tree, "wnids.txt").split()
        return Index([*_train(tree, classes, findings), *_test(tree, classes, findings)], classes)


def _train(tree: Tree, classes: list[str], findings: Findings) -> list[Item]:
    images: dict[str, list[str]] = defaultdict(list)
    for name in tree.names:
        parts = name.split("/")
        if len(parts) == 4 and parts[0] == "train" and parts[2] == "images":
            images[parts[1]].append(name)
    for wnid in sorted(set(subfolders(tree, "train")) - set(classes)):
        findings.add(f"train/{wnid}", "unknown class folder", "wnids.txt does not name it")
    items = []
    for wnid in classes:
        boxes = _boxes(tree, wnid, findings) if images[wnid] else {}
        for name in images[wnid]:
            file = name.rpartition("/")[2]
            if not is_image(name, findings):
                continue
            if file not in boxes:
                findings.add(name, "missing annotation", f"{wnid}_boxes.txt has no line for it")
            items.append(Item(name, wnid, "train", boxes.pop(file, None)))
        for file in boxes:
            findings.add(f"train/{wnid}/images/{file}", "missing image", "it has a box only")
    return items


def _boxes(tree: Tree, wnid: str, findings: Findings) -> dict[str, tuple[Box, ...]]:
    path = f"train/{wnid}/{wnid}_boxes.txt"
    boxes: dict[str, tuple[Box, ...]] = defaultdict(tuple)
    for number, line in _lines(tree, path, findings):
        file, *edges = line.split("\t")
        if box := _box(edges, f"{path}, line {number}", findings):
            boxes[file] += (box,)
    return dict(boxes)


def _test(tree: Tree, classes: list[str], findings: Findings) -> list[Item]:
    images = {name for name in tree.names if name.startswith("val/images/")}
    known = set(classes)
    items = []
    for number, line in _lines(tree, VAL_LIST, findings):
        where = f"{VAL_LIST}, line {number}"
        file, *rest = line.split("\t")
        wnid, edges = (rest[0], rest[1:]) if rest else ("", [])
        name = f"val/images/{file}"
        if name not in images:
            findings.add(where, "missing image", f"{name} does not exist")
            continue
        images.remove(name)
        if wnid not in known:
            findings.add(where, "unknown class", f"wnids.txt does not name {wnid!r}")
        elif is_image(name, findings):
            box = _box(edges, where, findings) if edges else None
            items.append(Item(name, wnid, "test", (box,) if box else None))
    for name in sorted(images):
        findings.add(name, "missing annotation", f"{VAL_LIST} has no line for it")
    return items


def _lines(tree: Tree, path: str, findings: Findings) -> list[tuple[int, str]]:
    try:
        text = tree.read(path).decode()
    except (OSError, UnicodeDecodeError) as error:
        findings.add(path, "unreadable annotation", str(error))
        return []
    return [(n, line) for n, line in enumerate(text.splitlines(), start=1) if line.strip()]


def _box(edges: list[str], where: str, findings: Findings) -> Box | None:
    try:
        x0, y0, x1, y1 = (int(edge) for edge in edges)
    except ValueError:
        findings.add(where, "unreadable box", f"expected four whole numbers, got {edges}")
        return None
    return x0, y0, x1 + 1, y1 + 1  # the last pixel belongs to the box


class TinyImagenetSettings(ImageFilesSettings):
    """The official layout; its validation images are the test set."""

    name: Literal["tiny-imagenet"] = "tiny-imagenet"
    augment: AugmentSettings = AugmentSettings(pad=4)
    """`flip` and `pad`."""

    def source(self) -> TinyImagenet:
        """Return the official layout."""
        return TinyImagenet()


TinyImagenetTask = TaskKind(TinyImagenetSettings, ImageNetworkSettings, load_image_files)
