"""Tell masks from images by their names, and find the image of each mask.

masks/<class>/a.png            in a folder of their own: masks, annotations, trimaps, …
<class>/mask/a.png             or in one for each class, beside <class>/images
<class>/a_mask.png             beside the image, perhaps several: a_mask_1.png
<class>/a.png                  beside <class>/a.jpg
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from lupi.loaders.images.names import MASK_FOLDERS, ImageNames, logical_path

MASK_NAME = re.compile(
    r"(?P<of>.+?)[ _.-](mask|seg|segmentation|gt|annotation|label)s?[ _.-]?\(?\d*\)?", re.I
)
IMAGE_OR_MASK_FOLDERS = re.compile(rf"{MASK_FOLDERS.pattern}|images?|imgs?|jpegimages", re.I)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Which files are images, and the masks of each."""

    images: list[str]
    masks: dict[str, tuple[str, ...]]
    """By image."""
    alone: list[str]
    """Masks without an image, or with several."""
    where: str
    """Where masks were found, in words."""


def pair_masks(names: Sequence[str], folder: str | None = None) -> Pairs:
    """Divide image files into images and masks.

    Args:
        names: paths of all image files.
        folder: folder of the masks; None: wherever names say that they are.
    """
    if folder is not None:
        start = f"{folder}/"
        masks = {n: _without_mask_word(n.removeprefix(start)) for n in names if n.startswith(start)}
        return _paired(names, masks, f"{folder}/")
    in_folders = {name: logical_path(name, IMAGE_OR_MASK_FOLDERS) for name in names if _aside(name)}
    if in_folders:
        pairs = _paired(names, {n: _without_mask_word(p) for n, p in in_folders.items()}, "")
        if len(pairs.alone) <= len(in_folders) / 2:  # otherwise a class is called like masks
            folders = sorted({PurePosixPath(n).parent.name for n in in_folders})
            word = next(part for part in PurePosixPath(next(iter(in_folders))).parts if _word(part))
            kind = f"{word}/" if len(folders) > 1 or folders != [word] else f"{folders[0]}/"
            return Pairs(pairs.images, pairs.masks, pairs.alone, f"folders {kind}")
    beside = {}
    stems = {str(PurePosixPath(name).with_suffix("")) for name in names}
    for name in names:
        path = str(PurePosixPath(name).with_suffix(""))
        match = MASK_NAME.fullmatch(path.rpartition("/")[2])
        if match and (of := path[: len(path) - len(match[0])] + match["of"]) in stems:
            beside[name] = of
    if beside:
        return _beside(names, beside, f"beside the images, such as {next(iter(beside))}")
    of_stem = defaultdict(list)
    for name in names:
        of_stem[str(PurePosixPath(name).with_suffix(""))].append(name)
    twins = {
        name: stem
        for stem, some in of_stem.items()
        for name in some
        if len(some) == 2 and name.lower().endswith(".png")
    }
    if 2 * len(twins) == 2 * sum(len(some) == 2 for some in of_stem.values()):  # none of two PNGs
        return _beside(names, twins, ".png beside the images, with the same name")
    return Pairs(list(names), {}, [], "")


def _aside(name: str) -> bool:
    return any(_word(part) for part in PurePosixPath(name).parts[:-1])


def _word(part: str) -> bool:
    return MASK_FOLDERS.fullmatch(part) is not None


def _without_mask_word(path: str) -> str:
    """Return a path without suffix, and a_mask as a."""
    stem = path if "." not in path.rpartition("/")[2] else str(PurePosixPath(path).with_suffix(""))
    folder, slash, last = stem.rpartition("/")
    match = MASK_NAME.fullmatch(last)
    return f"{folder}{slash}{match['of'] if match else last}"


def _paired(names: Sequence[str], masks: dict[str, str], where: str) -> Pairs:
    images = [name for name in names if name not in masks]
    known = ImageNames(images)
    found: dict[str, list[str]] = defaultdict(list)
    alone = []
    for mask, of in masks.items():
        last = logical_path(mask, IMAGE_OR_MASK_FOLDERS)
        exact = known.of_stem(last)  # a file a_mask_1.jpg may be an image itself
        matches = exact if len(exact) == 1 else known.of_stem(logical_path(f"{of}.png"))
        if len(matches) == 1:
            found[matches[0]].append(mask)
        else:
            alone.append(mask)
    return Pairs(images, _sorted(found), alone, where)


def _beside(names: Iterable[str], masks: dict[str, str], where: str) -> Pairs:
    images = [name for name in names if name not in masks]
    of_stem = {str(PurePosixPath(name).with_suffix("")): name for name in images}
    found: dict[str, list[str]] = defaultdict(list)
    alone = []
    for mask, stem in masks.items():
        if stem in of_stem:
            found[of_stem[stem]].append(mask)
        else:
            alone.append(mask)
    return Pairs(images, _sorted(found), alone, where if masks else "")


def _sorted(found: dict[str, list[str]]) -> dict[str, tuple[str, ...]]:
    return {image: tuple(sorted(masks)) for image, masks in found.items()}
