"""Folders of images: labels from folders or a CSV; x* from a CSV, COCO JSON, VOC XML or masks.

<class>/*                      images by class, perhaps in one folder, as images/<class>/*, or
train/<class>/* test/<class>/* the same in parts (also val), or
any folders, and a CSV         with columns file, label and perhaps part (train, val, test)

boxes: a CSV or JSON file      see box_files.py; or a folder of VOC XML, . for anywhere
masks: a folder                the image's path with .png, below it, with or without the first
                               folder: not black on the object, or one of `mask_values` there
"""

import re
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from lupi.errors import LupiError
from lupi.loaders.findings import Findings
from lupi.loaders.images.layouts.box_files import VOC, Boxes, ImageNames, read_boxes, read_table
from lupi.loaders.images.layouts.index import PARTS, Index, Item, Part, has_image_suffix, is_image
from lupi.loaders.images.layouts.trees import Tree, subfolders

LIKE_ANNOTATIONS = re.compile("(mask|annotation|trimap|segmentation|label|box)(e?s)?", re.I)


@dataclass(frozen=True)
class ImageFolder:
    """Locations of labels and regions, below the root."""

    labels: str | None = None
    """A CSV; None: the folders are the classes."""
    boxes: str | None = None
    """A CSV, a COCO JSON file, or a folder of PASCAL VOC XML; `.`: beside the images."""
    masks: str | None = None
    """A folder."""
    mask_values: tuple[int, ...] | None = None
    """Values of a mask on the object; None: all but black."""

    def index(self, tree: Tree, findings: Findings) -> Index:
        """List the images with their regions."""
        aside = self.masks or (self.boxes if self.boxes in tree.folders else None)
        if self.labels is None:
            items, classes = _by_folder(tree, aside, findings, self.boxes == ".")
        else:
            items = _by_table(tree, self.labels, aside, findings)
            classes = sorted({item.label for item in items})
        if self.boxes is not None:
            names = ImageNames(item.name for item in items)
            found = read_boxes(tree, self.boxes, names, findings)
            items = [_with_boxes(item, found.get(item.name, Boxes())) for item in items]
        if self.masks is not None:
            items = [
                replace(item, mask_values=self.mask_values)
                for item in _with_masks(tree, self.masks, items, findings)
            ]
        return Index(items, classes)


def _by_folder(
    tree: Tree, masks: str | None, findings: Findings, has_xml: bool = False
) -> tuple[list[Item], list[str]]:
    """Return items whose class is their folder: in the root, its only folder, or `train` there.

    `masks` is a folder of annotations, not a class; with `has_xml`, annotations are next to images.
    """
    top = ""
    tops = [name for name in subfolders(tree, "") if not _holds_masks_only(tree, name, masks)]
    if len(tops) == 1 and tops != ["train"] and len(subfolders(tree, tops[0])) > 1:
        top, tops = f"{tops[0]}/", subfolders(tree, tops[0])
    classes = subfolders(tree, f"{top}train") if "train" in tops else tops
    folders: dict[str, tuple[Part, str]] = {f"{top}{name}": ("train", name) for name in tops}
    if "train" in tops:
        found = [(part, name) for part in PARTS for name in subfolders(tree, top + part)]
        folders = {f"{top}{part}/{name}": (part, name) for part, name in found}
    for folder, (_, label) in folders.items():
        if LIKE_ANNOTATIONS.fullmatch(label):
            findings.note(folder, "class that is named like annotations", "is it a class?")
        if label not in classes:
            findings.add(folder, "unknown class folder", "train has no such one")
    items = []
    for name in (n for n in tree.names if not (has_xml and n.lower().endswith(VOC))):
        folder = "" if _is_in(name, masks) else name.rpartition("/")[0]
        while folder and folder not in folders:  # images may lie deeper
            folder = folder.rpartition("/")[0]
        if folder:
            part, label = folders[folder]
            if label in classes and is_image(name, findings):
                items.append(Item(name, label, part))
        elif has_image_suffix(name) and not _is_in(name, masks):
            findings.add(name, "image outside the class folders")
    return items, classes


def _by_table(tree: Tree, path: str, masks: str | None, findings: Findings) -> list[Item]:
    """Return the items listed in a CSV."""
    images = {name for name in tree.names if has_image_suffix(name) and not _is_in(name, masks)}
    names = ImageNames(images)
    items: dict[str, Item] = {}
    for where, row in read_table(tree, path, ("file", "label")):
        name = names.find(row["file"], where, findings)
        if name is None:
            continue
        part = row.get("part") or "train"
        label = row["label"].strip()
        if part not in PARTS or not label:
            wrong = f"label {label!r}, part {part!r}; expected a label, and {' or '.join(PARTS)}"
            findings.add(where, "unreadable label", wrong)
        elif name in items and (items[name].label, items[name].part) != (label, part):
            findings.add(where, "contradicting label", f"{name} has another one above")
        else:
            items[name] = Item(name, label, part)
    for name in sorted(images - items.keys()):
        findings.add(name, "missing annotation", f"{path} has no line for it")
    return list(items.values())


def _with_boxes(item: Item, found: Boxes) -> Item:
    return replace(item, boxes=found.boxes, boxes_size=found.size)


def _with_masks(tree: Tree, folder: str, items: list[Item], findings: Findings) -> list[Item]:
    if folder not in tree.folders:
        raise LupiError(f"task.masks: {tree.root} has no folder {folder}")
    unused = {name for name in tree.names if _is_in(name, folder)}
    out = []
    for item in items:
        path = PurePosixPath(item.name).with_suffix(".png")
        inner = PurePosixPath(*path.parts[1:])  # of images/cats/1.jpg there may be masks/cats/1.png
        own = next((m for p in (path, inner) if (m := f"{folder}/{p}") in unused), None)
        out.append(replace(item, mask=own))
        unused.discard(own or "")
    for name in sorted(unused):
        findings.add(name, "mask without an image", "its path should be the image's, with .png")
    return out


def _holds_masks_only(tree: Tree, folder: str, masks: str | None) -> bool:
    """Return whether a folder is the folder of masks, or contains it and no other images."""
    if masks is None or not (_is_in(folder, masks) or _is_in(masks, folder)):
        return False
    images = (n for n in tree.names if n.startswith(f"{folder}/") and has_image_suffix(n))
    return all(_is_in(name, masks) for name in images)


def _is_in(name: str, folder: str | None) -> bool:
    return folder is not None and (name == folder or name.startswith(f"{folder}/"))
