"""Training, validation and test images of one seed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lupi.errors import LupiError
from lupi.loaders.division import Division, Part, check_groups, given_parts
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


def divided_parts(images: StoredImages, division: Division) -> DrawParts:
    """Return what draws the images of a seed from those that a division divides."""

    def draw(seed: int) -> ImageParts:
        return ImageParts(*(ImageRows(images, rows) for rows in division.draw(seed).values()))

    return draw


def divide_images(
    loaded: Loaded, n_val: int, n_test: int, annotated_only: bool, groups: str = "groups"
) -> Division:
    """Let each seed draw the parts that the source does not have, class by class or by group."""
    images, y = loaded.every, loaded.every.y
    rows = given_parts(
        {"train": len(loaded.train.y), "val": len(loaded.val.y), "test": len(loaded.test.y)}
    )
    amounts: dict[Part, int] = {"val": n_val, "test": n_test}
    drawn = {part: amounts[part] for part in loaded.held_out}
    pool = np.concatenate([rows["train"], *(rows[part] for part in drawn)])
    given = {part: some for part, some in rows.items() if part not in drawn} | {"train": pool}
    counts, n_needed = np.bincount(y[pool]), sum(drawn.values()) + 1
    if counts.min() < n_needed:
        raise LupiError(
            f"class {loaded.classes[int(counts.argmin())]} has {counts.min()} images that can be "
            f"used; {n_needed} are needed: lower task.n_val or task.n_test"
        )
    if loaded.groups is not None:
        named = np.array(loaded.group_names, dtype=object)[loaded.groups]
        check_groups({part: named[some] for part, some in given.items()})
    return Division(
        y,
        given,
        drawn,
        loaded.groups,
        keys=loaded.keys,
        trainable=images.has_region if annotated_only and drawn else None,
        names={"groups": groups},
    )


def fixed_parts(train: StoredImages, val: StoredImages, test: StoredImages) -> DrawParts:
    """Return the same images for every seed."""
    parts = ImageParts(all_rows(train), all_rows(val), all_rows(test))
    return lambda seed: parts
