"""Images decoded once into memory-mapped files, with their boxes or masks.

    <cache>/<key>/x.npy      (N, 3, S, S) bytes: training, then validation, then test images
                  boxes.npy  (N, K, 4) of the source's boxes, filled up with empty ones
                  masks.npy  (N, S, S) instead, if the source has masks
                  has.npy    (N,) whether an image has x*
                  y.npy      (N,) labels
                  keys.npy   (N,) a number made of each image's name
                  groups.npy (N,) place of each image's group in `groups` of about.json, if any
                  about.json classes, sizes of the three parts, and everything found on the way

The key is a fingerprint of the files of the source and of the settings that decide the content.
A folder is written under a temporary name and renamed when complete, so an existing one is valid.
"""

import json
import math
import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from filelock import FileLock
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from lupi.errors import LupiError
from lupi.facts import Fact
from lupi.limits import read_regular
from lupi.loaders.findings import Findings, OnBad
from lupi.loaders.images.batches import Images, StoredImages
from lupi.loaders.images.decode import (
    UPRIGHT,
    BadImageError,
    Decoded,
    decode_image,
)
from lupi.loaders.images.index import ImageSelection, Item, Source
from lupi.loaders.images.near_copies import copy_remarks, thumbnails
from lupi.loaders.images.regions import (
    Boxes,
    boxes_of,
    fit_mask,
    region_of,
    stack_boxes,
    with_annotation,
)
from lupi.loaders.images.trees import Tree
from lupi.settings import fingerprint
from lupi.subsets import PARTS, Part

FORMAT = 5
ABOUT = "about.json"
NO_BOXES: Boxes = np.zeros((0, 4))
DARK = 2**14
"""16-bit images, such as those of 12-bit cameras and scanners, that use fewer values."""
SECONDS = 0.1
"""Between two reports of progress."""

OnDecoded = Callable[[int, int], None]
"""Called with the number of images decoded so far, and of all."""


@dataclass(frozen=True)
class OpenedImages:
    """The images of a source, and what was found in it."""

    parts: Mapping[Part, StoredImages]
    classes: list[str]
    findings: Findings
    about: str
    """File that lists all findings."""

    def finding_counts(self) -> dict[str, int]:
        """Return the counts to record: images without x*, and each kind of finding."""
        train = self.parts["train"]
        _, has = train.regions(np.arange(len(train.y)), "real", 0)
        return {"training image without x*": int((~has).sum()), **self.findings.counts()}


@dataclass(frozen=True)
class Loaded(OpenedImages):
    """The content of a cache folder."""

    parts: Mapping[Part, Images]
    folder: Path
    every: Images
    """All images: training, then validation, then test images."""
    keys: NDArray[np.uint64]
    """Of all images, made of their names."""
    held_out: tuple[Part, ...]
    """Parts that the source does not have and that were taken from its training images."""
    groups: NDArray[np.int64] | None
    """Group of each image, as a place in `group_names`."""
    group_names: tuple[str, ...]
    layout: tuple[Fact, ...]
    """How the files were understood."""

    @property
    def sizes(self) -> dict[Part, int]:
        """Number of images of each part."""
        return {part: len(images.y) for part, images in self.parts.items()}


def load(
    tree: Tree,
    source: Source,
    wanted: ImageSelection,
    cache: Path,
    on_bad: OnBad,
    on_decoded: OnDecoded = lambda done, total: None,
) -> Loaded:
    """Return the wanted images, decoding them first if the cache does not have them."""
    findings = Findings(on_bad)
    key = fingerprint({"format": FORMAT, "files": tree.fingerprint, **asdict(wanted)})
    folder = cache / key
    lock = FileLock(cache / f"{key}.lock")
    try:
        cache.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except OSError as error:
        raise LupiError(
            f"task.cache: {cache} can't be used ({error.strerror}); choose another folder"
        ) from None
    try:
        if not folder.exists():
            _build(tree, source, wanted, folder, findings, on_decoded)
    finally:
        lock.release()
    return _open(folder, Findings(on_bad))


def _open(folder: Path, findings: Findings) -> Loaded:
    try:
        about = json.loads(read_regular(folder / ABOUT))
        findings.extend(about["findings"])
        ends = np.cumsum([about["sizes"][part] for part in PARTS]).tolist()
        paths = folder.glob("*.npy")
        arrays = {path.stem: open_memmap(path, mode="r")[: ends[-1]] for path in paths}
        y, has, keys = (np.array(arrays[name]) for name in ("y", "has", "keys"))
        every = Images(arrays["x"], y, arrays["boxes"], arrays.get("masks"), has)
        starts = [0, *ends[:-1]]
        loaded = Loaded(
            {p: every.between(*where) for p, *where in zip(PARTS, starts, ends, strict=True)},
            about["classes"],
            findings,
            str(folder / ABOUT),
            folder,
            every,
            keys,
            tuple(part for part in PARTS if part in about["held_out"]),
            np.array(arrays["groups"]) if "groups" in arrays else None,
            tuple(about["groups"]),
            tuple(Fact(*fact) for fact in about["layout"]),
        )
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise LupiError(
            f"task.cache: {folder} is damaged ({error}); delete it to rebuild it"
        ) from None
    findings.check()
    return loaded


def _build(
    tree: Tree,
    source: Source,
    wanted: ImageSelection,
    folder: Path,
    findings: Findings,
    on_decoded: OnDecoded,
) -> None:
    index = source.index(tree, findings)
    layout = [(fact.about, fact.text) for fact in index.layout]
    classes, parts, held_out = wanted.choose(index, findings)
    del index  # of a large source, most images are not chosen
    unfinished = folder.with_name(f"{folder.name}.unfinished")  # ours alone: we hold the lock
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    try:
        writer = _Writer(tree, unfinished, parts, classes, wanted, findings)
        sizes = {part: writer.write(decoding(parts, part, on_decoded)) for part in PARTS}
        check_sizes(sizes, writer.y[: sizes["train"]], classes)
        writer.close()
        findings.remarks += writer.copy_remarks(sizes, held_out)
        about = {
            "classes": classes,
            "sizes": sizes,
            "layout": layout,
            "held_out": held_out,
            "groups": list(writer.groups),
            "findings": findings.described(),
        }
        (unfinished / ABOUT).write_text(json.dumps(about, indent=1), encoding="utf-8")
        unfinished.replace(folder)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def decoding(
    parts: Mapping[Part, Sequence[Item]], part: Part, on_decoded: OnDecoded
) -> Iterable[Item]:
    """Yield the items of a part, and report progress among all parts after each."""
    before = sum(len(parts[other]) for other in PARTS[: PARTS.index(part)])
    total = sum(map(len, parts.values()))
    told = 0.0
    for n, item in enumerate(parts[part], start=before + 1):
        yield item
        if time.monotonic() - told > SECONDS or n == total:
            told = time.monotonic()
            on_decoded(n, total)


def check_sizes(
    sizes: Mapping[Part, int], train_y: NDArray[np.int64], classes: Sequence[str]
) -> None:
    """Raise an error for classes without training images and for empty parts."""
    counts = np.bincount(train_y, minlength=len(classes))
    if not counts.all():
        raise LupiError(
            f"class {classes[int(counts.argmin())]} has no usable training image left: "
            "choose other classes with task.classes"
        )
    for part in PARTS[1:]:
        if not sizes[part]:
            raise LupiError(f"there are no usable {part} images of these classes")


def read_image(
    tree: Tree, name: str, wanted: ImageSelection, findings: Findings
) -> tuple[bytes, Decoded] | None:
    """Return a file and its image; for an invalid file, add to `findings` and return None."""
    try:
        data = tree.read(name)
        image = decode_image(data, wanted.side, wanted.fit)
    except (BadImageError, OSError) as error:
        findings.add(name, "unreadable image", str(error))
        return None
    if image.converted is not None:
        findings.note(name, f"{image.converted} image converted to RGB")
    if image.brightest and image.brightest < DARK:
        findings.note(
            name,
            "16-bit image that becomes nearly black",
            f"its values reach {image.brightest:,} of 65,535, so that few of 256 grey levels are "
            "left: scale such images to 8 bits yourself",
        )
    if image.orientation != UPRIGHT:
        findings.note(name, "image turned upright", "as its EXIF orientation says")
    return data, image


class _Writer:
    """Writes decoded images to consecutive rows; undecodable files are reported and skipped."""

    def __init__(
        self,
        tree: Tree,
        folder: Path,
        parts: Mapping[Part, Sequence[Item]],
        classes: Sequence[str],
        wanted: ImageSelection,
        findings: Findings,
    ) -> None:
        self.tree, self.folder, self.wanted, self.findings = tree, folder, wanted, findings
        self.labels = {name: label for label, name in enumerate(classes)}
        self.n_rows, side = 0, wanted.side
        n = sum(map(len, parts.values()))
        free = shutil.disk_usage(folder).free
        if (needed := n * 3 * side * side) > free:
            raise LupiError(
                f"task.cache: {folder.parent} needs {needed / 2**30:.1f} GiB, but "
                f"{free / 2**30:.1f} are free; choose another folder or fewer images (n_train)"
            )
        as_masks = any(item.needs_mask for items in parts.values() for item in items)
        self.x = self._file("x", (n, 3, side, side))
        self.masks = self._file("masks", (n, side, side)) if as_masks else None
        self.boxes: list[Boxes] = []
        self.names: list[str] = []
        self.y = np.zeros(n, dtype=np.int64)
        self.has = np.zeros(n, dtype=np.bool_)
        self.keys = np.zeros(n, dtype=np.uint64)
        self.groups: dict[str, int] = {}
        self.group = np.zeros(n, dtype=np.int64)

    def write(self, items: Iterable[Item]) -> int:
        """Decode items into the next rows; return how many could be."""
        before = self.n_rows
        for item in items:
            self._write(item)
        return self.n_rows - before

    def close(self) -> None:
        """Write what is not written yet."""
        self.x.flush()
        n_boxes = np.array(list(map(len, self.boxes)))
        boxes = np.concatenate(self.boxes)
        stacked = stack_boxes(boxes, n_boxes, n_boxes.max(), self.wanted.side)
        np.save(self.folder / "boxes.npy", stacked)
        np.save(self.folder / "y.npy", self.y)
        np.save(self.folder / "has.npy", self.has)
        np.save(self.folder / "keys.npy", self.keys)
        if self.groups:
            np.save(self.folder / "groups.npy", self.group)

    def copy_remarks(self, sizes: Mapping[Part, int], held_out: Sequence[Part]) -> list[str]:
        """Return remarks about near-copies that training and test may share."""
        n = self.n_rows
        part = np.repeat(np.arange(len(PARTS)), [sizes[part] for part in PARTS])
        for drawn in held_out:  # each seed draws these from the training images
            part[part == PARTS.index(drawn)] = 0
        groups = self.group[:n] if self.groups else None
        places = thumbnails(self.x[:n])
        return copy_remarks(places, self.names, self.y[:n], part, bool(held_out), groups)

    def _file(self, name: str, shape: tuple[int, ...]) -> np.memmap:
        path = self.folder / f"{name}.npy"
        pixels = open_memmap(path, mode="w+", dtype=np.uint8, shape=shape)
        if not hasattr(os, "posix_fallocate"):
            return pixels
        try:
            with path.open("r+b") as file:  # a page that finds no room later would be a bus error
                os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
        except OSError as error:
            raise LupiError(
                f"task.cache: {self.folder.parent} has no room for {math.prod(shape):,} bytes "
                f"({error.strerror}); choose another folder, or fewer images (n_train)"
            ) from None
        return pixels

    def _write(self, item: Item) -> None:
        read = read_image(self.tree, item.name, self.wanted, self.findings)
        if read is None:
            return
        _, image = read
        item = with_annotation(item, self.tree, self.findings)
        row, w = self.n_rows, self.wanted
        self.x[row] = image.pixels
        self.y[row] = self.labels[item.label]
        self.keys[row] = item.key
        if item.group is not None:
            self.group[row] = self.groups.setdefault(item.group, len(self.groups))
        self.names.append(item.name)
        self.boxes.append(NO_BOXES)
        if self.masks is None:
            self.boxes[-1] = boxes_of(item, image, w.fit, self.findings)
            self.has[row] = len(self.boxes[-1]) > 0 or item.shapes == ()
        elif item.has_region:
            self.has[row] = self._mask(item, image, self.masks[row])
        self.n_rows += 1

    def _mask(self, item: Item, image: Decoded, out: NDArray[np.uint8]) -> bool:
        """Write the region of an image as a mask; return whether it can be used."""
        try:
            inside = region_of(item, image, self.tree)
        except (BadImageError, OSError) as error:
            self.findings.add(item.masks[0], "unreadable mask", str(error))
            return False
        out[:] = fit_mask(inside, self.wanted.side, self.wanted.fit)
        if not inside.any():
            self.findings.note(item.name, "empty region", "nothing is marked in this image")
        elif not out.any():
            self.findings.note(
                item.name, "region outside the central square", "set task.fit to squash"
            )
            return False
        return True
