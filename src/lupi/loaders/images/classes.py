"""The class, part and group of each image: from folders, a CSV, or annotations.

Images of one group, such as those of one patient, belong together; a CSV with a column `file` and
a column with the group names it.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from lupi.errors import LupiError
from lupi.loaders.findings import Findings
from lupi.loaders.images.annotations.read import file_column, header, label_column, read_table
from lupi.loaders.images.annotations.shapes import Annotation
from lupi.loaders.images.index import Item, has_image_suffix
from lupi.loaders.images.names import ImageNames, logical_path
from lupi.loaders.images.trees import Tree
from lupi.settings import unknown_name
from lupi.subsets import PARTS, Part

PART_FOLDERS: dict[str, Part] = {
    "train": "train",
    "training": "train",
    "val": "val",
    "valid": "val",
    "validation": "val",
    "test": "test",
    "testing": "test",
}
NOTHING = "nothing"
"""Class of images in which annotators found nothing, if classes are those of the regions."""
HIDDEN = re.compile(r"(thumbs\.db|desktop\.ini|__macosx.*|readme.*|licen[cs]e.*)", re.I)


def by_folder(images: Sequence[str], findings: Findings) -> list[Item] | None:
    """Return items whose class is their folder; None if all images are in one folder.

    The class is the first folder of the path, after train, val or test, and after folders that all
    images share. Folders named `images` say nothing.
    """
    paths = {name: logical_path(name).split("/")[:-1] for name in images}
    while paths and all(folders for folders in paths.values()):
        first = {folders[0] for folders in paths.values()}
        if len(first) > 1 or not any(len(folders) > 1 for folders in paths.values()):
            break
        paths = {name: folders[1:] for name, folders in paths.items()}
    firsts = {folders[0].lower() for folders in paths.values() if folders}
    has_parts = "train" in firsts or "training" in firsts
    items: list[Item] = []
    for name, folders in paths.items():
        part: Part = "train"
        if has_parts and folders and folders[0].lower() in PART_FOLDERS:
            part, folders = PART_FOLDERS[folders[0].lower()], folders[1:]
        elif has_parts:
            findings.note(name, "image outside train, val and test", "left out")
            continue
        items.append(Item(name, folders[0] if folders else "", part))
    classes = {item.label for item in items if item.part == "train" and item.label}
    if len(classes) < 2:
        return None
    kept = []
    for item in items:
        if not item.label:
            findings.note(item.name, "image outside the class folders", "left out")
        elif item.label not in classes:
            findings.add(item.name, "unknown class folder", f"train has no {item.label}")
        else:
            kept.append(item)
    return kept


def by_table(tree: Tree, path: str, images: Sequence[str], findings: Findings) -> list[Item]:
    """Return the items listed in a CSV with columns file, label and perhaps part."""
    columns = header(tree, path)
    file, label = file_column(columns) or "file", label_column(columns) or "label"
    names = ImageNames(images)
    items: dict[str, Item] = {}
    for where, row in read_table(tree, path, (file, label)):
        name = names.find(row[file], where, findings)
        if name is None:
            continue
        part = row.get("part") or "train"
        given = row[label].strip()
        if part not in PARTS or not given:
            wrong = f"label {given!r}, part {part!r}; expected a label, and {' or '.join(PARTS)}"
            findings.add(where, "unreadable label", wrong)
        elif name in items and (items[name].label, items[name].part) != (given, part):
            findings.add(where, "contradicting label", f"{name} has another one above")
        else:
            items[name] = Item(name, given, part)
    for name in sorted(set(images) - items.keys()):
        findings.add(name, "missing annotation", f"{path} has no line for it")
    return list(items.values())


def by_annotation(
    images: Sequence[str], found: Mapping[str, Annotation], findings: Findings
) -> list[Item]:
    """Return items whose class is the one that annotators named; with several, none is right."""
    items = []
    for name in images:
        if name not in found:
            findings.note(name, "image without annotation", "left out: it has no class")
            continue
        labels = sorted(set(found[name].labels))
        if len(labels) > 1:
            findings.note(name, "image of several classes", f"left out: {', '.join(labels)}")
        elif labels or not found[name].shapes:
            items.append(Item(name, labels[0] if labels else NOTHING))
        else:
            findings.note(name, "image without class", "left out: its regions have no label")
    return items


def label_table(tree: Tree) -> str | None:
    """Return the CSV of the root that gives each image its class, by its columns."""
    for name in tree.names:
        if "/" not in name and name.lower().endswith(".csv"):
            columns = header(tree, name)
            if file_column(columns) and label_column(columns):
                return name
    return None


def left_out(names: Sequence[str], used: set[str]) -> dict[str, list[str]]:
    """Return the files that are neither images nor annotations, by why they are not read."""
    found: dict[str, list[str]] = {}
    for name in names:
        last = name.rpartition("/")[2]
        if name in used or has_image_suffix(name) or HIDDEN.fullmatch(last):
            continue
        suffix = last.rpartition(".")[2].lower()
        why = "files that are not images"
        if suffix in ("dcm", "dicom", "nii", "mha"):
            why = "medical images, which are not read: convert them to PNG"
        elif suffix in ("npy", "npz", "mat", "h5", "raw"):
            why = "arrays, which are not read: convert them to PNG"
        elif suffix in ("svg", "pdf", "heic", "avif", "jxl"):
            why = f".{suffix} files, which are not read: convert them to PNG or JPEG"
        found.setdefault(why, []).append(name)
    return found


def count_labels(items: Sequence[Item]) -> dict[str, int]:
    """Return how many images each class has."""
    return dict(sorted(Counter(item.label for item in items).items()))


def with_groups(
    tree: Tree, path: str, column: str | None, items: Sequence[Item], findings: Findings
) -> list[Item]:
    """Return items with their groups; an image without one is a group by itself.

    Args:
        tree: Files below the root.
        path: Name of the CSV.
        column: Column with the groups; None: the only one besides that of the files.
        items: Images.
        findings: Collects images without a group and lines without an image.
    """
    group_of: dict[str, str] = {}
    column = column or _only_column(path, other_columns(tree, path))
    for where, name, group in column_of_images(tree, path, column, items, findings):
        if not group or group_of.setdefault(name, group) != group:
            what = "it is empty" if not group else f"it is in {group_of[name]!r} above"
            findings.add(where, "unreadable group", f"{name}: {what}")
    for item in items:
        if item.name not in group_of:
            findings.add(item.name, "image without a group", f"{path} has no line for it")
    return [item._replace(group=group_of.get(item.name, item.name)) for item in items]


def other_columns(tree: Tree, path: str) -> list[str]:
    """Return the columns of a CSV besides the one that names images."""
    columns = header(tree, path)
    return [name for name in columns if name != (file_column(columns) or "file")]


def column_of_images(
    tree: Tree, path: str, column: str, items: Sequence[Item], findings: Findings
) -> Iterator[tuple[str, str, str]]:
    """Yield the cells of a column of a CSV, each with its position and its image."""
    known = other_columns(tree, path)
    if column not in known:
        raise LupiError(f"{path}: {unknown_name('column', column, known)}")
    file = file_column(header(tree, path)) or "file"
    names = ImageNames(item.name for item in items)
    for where, row in read_table(tree, path, (file, column)):
        name = names.find(row[file], where, findings)
        if name is not None:
            yield where, name, row[column].strip()


def _only_column(path: str, columns: Sequence[str]) -> str:
    if len(columns) != 1:
        found = ", ".join(columns) or "none"
        raise LupiError(
            f"task.group_column: {path} needs one column beside the files, it has {found}; name "
            "the one whose images belong together"
        )
    return columns[0]
