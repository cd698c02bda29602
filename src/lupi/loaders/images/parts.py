"""Training, validation and test images of one seed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lupi.core import derive_seed
from lupi.errors import LupiError
from lupi.loaders.images.cache import Loaded
from lupi.loaders.images.split import StoredImages


@dataclass(frozen=True, slots=True)
class ImageRows:
    """Some rows of stored images."""

    images: StoredImages
    rows: NDArray[np.int64]

    @property
    def y(self) -> NDArray[np.int64]:
        """Labels of the rows."""
        return self.images.y[self.rows]


class ImageParts(NamedTuple):
    """Images to choose training rows from (with x*), validation and test images."""

    train: ImageRows
    val: ImageRows
    test: ImageRows


DrawParts = Callable[[int], ImageParts]
"""A seed to its images."""


def all_rows(images: StoredImages) -> ImageRows:
    """Return all images of a part."""
    return ImageRows(images, np.arange(len(images.y)))


def drawn_parts(loaded: Loaded, n_val: int, n_test: int, annotated_only: bool) -> DrawParts:
    """Let each seed draw the parts that the source does not have, class by class.

    An image that is added later changes at most one other of each seed: it may take its place.
    """
    images, y = loaded.every, loaded.every.y
    starts = np.cumsum([0, len(loaded.train.y), len(loaded.val.y)])
    given = ImageParts(
        *(
            ImageRows(images, start + np.arange(len(part.y)))
            for start, part in zip(starts, (loaded.train, loaded.val, loaded.test), strict=True)
        )
    )
    if not loaded.held_out:
        return lambda seed: given
    n_drawn = {"val": n_val, "test": n_test}
    pool = np.concatenate([given.train.rows, *(getattr(given, p).rows for p in loaded.held_out)])
    counts, n_needed = np.bincount(y[pool]), sum(n_drawn[part] for part in loaded.held_out) + 1
    if counts.min() < n_needed:
        raise LupiError(
            f"class {loaded.classes[int(counts.argmin())]} has {counts.min()} images that can be "
            f"used; {n_needed} are needed: lower task.n_val or task.n_test"
        )

    def draw(seed: int) -> ImageParts:
        order = pool[np.argsort(_mixed(loaded.keys[pool], seed), kind="stable")]
        parts: dict[str, list[NDArray[np.int64]]] = {p: [] for p in ("train", *loaded.held_out)}
        for label in np.unique(y):
            rest = order[y[order] == label]
            for part in loaded.held_out:
                parts[part].append(rest[: n_drawn[part]])
                rest = rest[n_drawn[part] :]
            parts["train"].append(rest)
        rows = {part: np.sort(np.concatenate(some)) for part, some in parts.items()}
        if annotated_only and images.has_region is not None:
            rows["train"] = rows["train"][images.has_region[rows["train"]]]
        return given._replace(**{part: ImageRows(images, some) for part, some in rows.items()})

    return draw


def _mixed(keys: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """Return a random number for each key, of its own for each seed (SplitMix64)."""
    mixed = keys ^ np.uint64(derive_seed(seed, "rows"))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))


def fixed_parts(train: StoredImages, val: StoredImages, test: StoredImages) -> DrawParts:
    """Return the same images for every seed."""
    parts = ImageParts(all_rows(train), all_rows(val), all_rows(test))
    return lambda seed: parts
