"""ImageNet CLS-LOC: class folders of images, and PASCAL-style XML with boxes for about half.

    train/<wnid>/*.JPEG            or Data/CLS-LOC/train/<wnid>/*.JPEG
    Annotation/<wnid>/*.xml        or Annotations/CLS-LOC/train/<wnid>/*.xml
    LOC_synset_mapping.txt         if there: a class per line, then its words

The left layout is what the archives of ILSVRC unpack to, the right one that of the Kaggle download.
An image without XML has no x*, which is normal; x* is the region of the object's boxes. The test
set is held out of train, as in the paper: the labels of the official one are not public.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from lupi.core import TaskKind
from lupi.errors import LupiError
from lupi.loaders.findings import Findings
from lupi.loaders.images.index import Index, Item, is_image
from lupi.loaders.images.trees import Tree, read_text, subfolders
from lupi.tasks.images.image_files import ImageFilesSettings, load_image_files
from lupi.tasks.images.network import ImageNetworkSettings

IMAGES = ("Data/CLS-LOC/train", "train")
ANNOTATIONS = ("Annotations/CLS-LOC/train", "Annotation", "annotations", "bbox", "boxes")
CLASS_LIST = "LOC_synset_mapping.txt"


@dataclass(frozen=True)
class Imagenet:
    """Class folders, and a folder of annotations with the same class folders."""

    annotations: str | None = None
    """Folder of `<wnid>/*.xml`, below the root; None: one of the usual ones."""

    def index(self, tree: Tree, findings: Findings) -> Index:
        """List the images of train; their boxes are read together with them."""
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
            items += _class_items(wnid, images[wnid], xml[wnid], findings)
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
    files: dict[str, list[str]] = defaultdict(list)
    start, depth = f"{folder}/", folder.count("/") + 2
    for name in tree.names:
        if name.startswith(start) and name.count("/") == depth:
            files[name[len(start) :].partition("/")[0]].append(name)
    return files


def _class_list(tree: Tree) -> list[str]:
    if CLASS_LIST not in tree.names:
        return []
    lines = read_text(tree, CLASS_LIST).splitlines()
    return [line.split()[0] for line in lines if line.strip()]


def _class_items(
    wnid: str, images: list[str], xml: list[str], findings: Findings
) -> Iterator[Item]:
    annotations = {_stem(name): name for name in xml}
    for name in images:
        if is_image(name, findings):
            path = annotations.pop(_stem(name), None)
            yield Item(name, wnid, annotation=path)
    if annotations:
        first = next(iter(annotations.values()))
        findings.note(first, "class with boxes of absent images", f"{len(annotations)} files")


def _stem(name: str) -> str:  # of a million names: pathlib would take ten times as long
    return name.rpartition("/")[2].rpartition(".")[0]


class ImagenetSettings(ImageFilesSettings):
    """Class folders with PASCAL-style boxes; validation and test are held out of train."""

    name: Literal["imagenet"] = "imagenet"
    image_size: int = Field(224, ge=8, le=1024)
    """Height and width in pixels that the network sees."""
    stored_size: int | None = Field(256, ge=8, le=1024)
    """Height and width in the cache, of which crops are taken."""
    n_test: int = Field(50, ge=1)
    """Test images per class, held out of train: with 1000 classes the paper's 50,000."""
    annotations: str | None = None
    """Folder of `<wnid>/*.xml` below the root. By default one of the usual ones."""

    def source(self) -> Imagenet:
        """Return the layout of ImageNet."""
        return Imagenet(self.annotations)

    @property
    def n_held_out_for_test(self) -> int:
        """Test images per class."""
        return self.n_test


ImagenetTask = TaskKind(ImagenetSettings, ImageNetworkSettings, load_image_files)
