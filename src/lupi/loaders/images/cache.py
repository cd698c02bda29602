"""Images decoded once into memory-mapped files.

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
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from filelock import FileLock
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from lupi.errors import LupiError
from lupi.facts import Fact
from lupi.limits import read_regular
from lupi.loaders.findings import Finding, Findings, OnBad
from lupi.loaders.images.decode import Fit, image_size_limit
from lupi.loaders.images.layouts.holdout import hold_out
from lupi.loaders.images.layouts.index import PARTS, Part, Source, pick_classes
from lupi.loaders.images.layouts.trees import Tree
from lupi.loaders.images.split import Images
from lupi.loaders.images.writer import ImageWriter, OnDecoded
from lupi.settings import fingerprint

FORMAT = 4
ABOUT = "about.json"


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
    convert_modes: bool
    """Whether greyscale, CMYK, 16-bit and other files are converted or rejected."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The content of a cache folder."""

    train: Images
    val: Images
    test: Images
    classes: list[str]
    findings: Findings
    folder: Path
    every: Images
    """All images: training, then validation, then test images."""
    keys: NDArray[np.uint64]
    """Of all images, made of their names."""
    held_out: tuple[Part, ...]
    """Parts that the source does not have and that were taken from its training images."""
    groups: NDArray[np.int64] | None = None
    """Group of each image, as a place in `group_names`."""
    group_names: tuple[str, ...] = ()
    layout: tuple[Fact, ...] = ()
    """How the files were understood."""

    @property
    def about(self) -> str:
        """The file that lists all findings."""
        return str(self.folder / ABOUT)

    def finding_counts(self) -> dict[str, int]:
        """Return the counts to record: images without x*, and each kind of finding."""
        assert self.train.has_region is not None
        without = int((~self.train.has_region).sum())
        return {"training image without x*": without, **self.findings.counts()}


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
    return _open(folder, findings)


def _open(folder: Path, findings: Findings) -> Loaded:
    try:
        about = json.loads(read_regular(folder / ABOUT))
        findings.bad = [Finding(**finding) for finding in about["bad"]]
        findings.notes = [Finding(**finding) for finding in about["notes"]]
        arrays = {path.stem: open_memmap(path, mode="r") for path in folder.glob("*.npy")}
        ends = np.cumsum([about["sizes"][part] for part in PARTS]).tolist()
        every = Images(
            arrays["x"][: ends[-1]],
            np.array(arrays["y"][: ends[-1]]),
            arrays["boxes"][: ends[-1]],
            arrays["masks"][: ends[-1]] if "masks" in arrays else None,
            np.array(arrays["has"][: ends[-1]]),
        )
        starts = [0, *ends[:-1]]
        parts = [every.between(start, end) for start, end in zip(starts, ends, strict=True)]
        keys = np.array(arrays["keys"][: ends[-1]])
        classes: list[str] = about["classes"]
        layout = tuple(Fact(*fact) for fact in about["layout"])
        held_out = tuple(part for part in PARTS if part in about["held_out"])
        groups = np.array(arrays["groups"][: ends[-1]]) if "groups" in arrays else None
        names = tuple(about["groups"])
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise LupiError(
            f"task.cache: {folder} is damaged ({error}); delete it to rebuild it"
        ) from None
    findings.check()
    train, val, test = parts
    return Loaded(
        train,
        val,
        test,
        classes,
        findings,
        folder,
        every,
        keys,
        held_out,
        groups,
        names,
        layout,
    )


def _build(
    tree: Tree,
    source: Source,
    wanted: ImageSelection,
    folder: Path,
    findings: Findings,
    on_decoded: OnDecoded,
) -> None:
    index = source.index(tree, findings)
    classes, items = pick_classes(index, wanted.classes, findings)
    w = wanted
    parts = hold_out(items, w.n_val, w.n_test, w.n_train, w.annotated_only)
    unfinished = folder.with_name(f"{folder.name}.unfinished")  # ours alone: we hold the lock
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    n_items = sum(map(len, parts.values()))
    try:
        writer = ImageWriter(
            tree,
            unfinished,
            n_items,
            classes,
            w.side,
            w.fit,
            w.convert_modes,
            findings,
            as_masks=any(item.masks or item.outlines for item in items),
        )
        with image_size_limit():
            sizes = {part: writer.write(parts[part], on_decoded) for part in PARTS}
        check_sizes(sizes, writer.y[: sizes["train"]], classes)
        writer.close()
        about = {
            "classes": classes,
            "sizes": sizes,
            "layout": [(fact.about, fact.text) for fact in index.layout],
            "held_out": sorted({"val", "test"} - {item.part for item in items}),
            "groups": list(writer.groups),
            "bad": [asdict(finding) for finding in findings.bad],
            "notes": [asdict(finding) for finding in findings.notes],
        }
        (unfinished / ABOUT).write_text(json.dumps(about, indent=1), encoding="utf-8")
        unfinished.replace(folder)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def check_sizes(sizes: dict[Part, int], train_y: NDArray[np.int64], classes: Sequence[str]) -> None:
    """Raise an error for classes without training images and for empty parts."""
    counts = np.bincount(train_y, minlength=len(classes))
    if not counts.all():
        raise LupiError(
            f"class {classes[int(counts.argmin())]} has no usable training image left: "
            "choose other classes with task.classes"
        )
    for part in ("val", "test"):
        if not sizes[part]:
            raise LupiError(f"there are no usable {part} images of these classes")
