"""ImageNet CLS-LOC: class folders of images, and PASCAL-style XML with boxes for about half.

    train/<wnid>/*.JPEG            or Data/CLS-LOC/train/<wnid>/*.JPEG
    Annotation/<wnid>/*.xml        or Annotations/CLS-LOC/train/<wnid>/*.xml
    LOC_synset_mapping.txt         if there: a class per line, then its words

The left layout is what the archives of ILSVRC unpack to, the right one that of the Kaggle download.
An image without XML has no x*, which is normal. The test set is held out of train, as in the
paper: the labels of the official one are not public.
"""

from dataclasses import dataclass
from pathlib import PurePosixPath

from lupi.errors import LupiError
from lupi.loaders.findings import Findings
from lupi.loaders.images.annotations.voc import VocImage, read_voc
from lupi.loaders.images.annotations.xml import BadXmlError
from lupi.loaders.images.layouts.index import Index, Item, is_image
from lupi.loaders.images.layouts.trees import Tree, read_text, subfolders

IMAGES = ("Data/CLS-LOC/train", "train")
ANNOTATIONS = ("Annotations/CLS-LOC/train", "Annotation", "annotations", "bbox", "boxes")
CLASS_LIST = "LOC_synset_mapping.txt"


@dataclass(frozen=True)
class Imagenet:
    """Class folders, and a folder of annotations with the same class folders."""

    annotations: str | None = None
    """Folder of `<wnid>/*.xml`, below the root; None: one of the usual ones."""

    def index(self, tree: Tree, findings: Findings) -> Index:
        """List the images of train with all their boxes."""
        train = _find(tree, IMAGES, "images (train/<wnid>/*.JPEG)")
        images = _files_by_class(tree, train)
        folders = ANNOTATIONS if self.annotations is None else (self.annotations,)
        found = _find(tree, folders, "boxes (Annotation/<wnid>/*.xml; see task.annotations)")
        xml = _files_by_class(tree, found)
        there = subfolders(tree, train)
        classes = _class_list(tree) or there
        for wnid in sorted(set(there) - set(classes)):
            findings.add(f"{train}/{wnid}", "unknown class folder", f"{CLASS_LIST} lacks it")
        items: list[Item] = []
        for wnid in classes:
            items += _class_items(tree, wnid, images.get(wnid, []), xml.get(wnid, []), findings)
        return Index(items, classes)


def _find(tree: Tree, folders: tuple[str, ...], what: str) -> str:
    for folder in folders:
        if folder in tree.folders:
            return folder
    raise LupiError(
        f"task.root: no {what} in {tree.root}; looked in {', '.join(folders)}. "
        "It should be the folder that holds both images and annotations"
    )


def _files_by_class(tree: Tree, folder: str) -> dict[str, list[str]]:
    files: dict[str, list[str]] = {}
    for name in tree.names:
        if name.startswith(f"{folder}/") and name.count("/") == folder.count("/") + 2:
            files.setdefault(name.split("/")[-2], []).append(name)
    return files


def _class_list(tree: Tree) -> list[str]:
    if CLASS_LIST not in tree.names:
        return []
    lines = read_text(tree, CLASS_LIST).splitlines()
    return [line.split()[0] for line in lines if line.strip()]


def _class_items(
    tree: Tree, wnid: str, images: list[str], xml: list[str], findings: Findings
) -> list[Item]:
    annotations = {PurePosixPath(name).stem: name for name in xml}
    items = []
    for name in images:
        if not is_image(name, findings):
            continue
        path = annotations.pop(PurePosixPath(name).stem, None)
        annotation = _read(tree, path, findings) if path else VocImage((), None)
        items.append(Item(name, wnid, "train", annotation.boxes, annotation.size))
    if annotations:
        first = next(iter(annotations.values()))
        findings.note(first, "class with boxes of absent images", f"{len(annotations)} files")
    return items


def _read(tree: Tree, path: str, findings: Findings) -> VocImage:
    try:
        return read_voc(tree.read(path))
    except (BadXmlError, OSError) as error:
        findings.add(path, "unreadable annotation", str(error))
        return VocImage((), None)
