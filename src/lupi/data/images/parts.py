"""Training, validation and test images of one seed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lupi.data.images.split import StoredImages


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


def fixed_parts(train: StoredImages, val: StoredImages, test: StoredImages) -> DrawParts:
    """Return the same images for every seed."""
    parts = ImageParts(all_rows(train), all_rows(val), all_rows(test))
    return lambda seed: parts
