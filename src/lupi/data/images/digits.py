"""Cluttered digits: a real handwritten digit at a random place among fragments of others.

Made from scikit-learn's bundled digits (1,797 images of 8x8), deterministically from a seed.
x is the image, x* the digit's box, y the digit. The digits of training, validation and test
are disjoint, and so are the digits that their fragments come from.
"""

from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch.nn import functional as F

from lupi.core import derive_seed
from lupi.data.images.split import Images
from lupi.settings import Settings

DIGIT_SIZES = (0.5, 0.5625, 0.625)
"""Height and width of a digit, as parts of the image's."""


class DigitsSettings(Settings):
    """What the images look like."""

    image_size: int = Field(24, ge=16, le=128)
    """Height and width in pixels."""
    n_fragments: int = Field(5, ge=0, le=50)
    """Pieces of other digits around the digit."""
    noise: float = Field(0.1, ge=0, le=1)
    """Standard deviation of the pixel noise; white is 1."""
    data_seed: int = Field(0, ge=0)
    """Seed of the images themselves; the seed of a run chooses among them."""


@lru_cache(maxsize=4)
def make_digits(settings: DigitsSettings) -> tuple[Images, Images, Images]:
    """Return training (997), validation (300 digits, twice) and test (500, four times) images."""
    from sklearn.datasets import load_digits

    bundle = load_digits()
    images = bundle.images.astype(np.float32) / 16.0
    labels = bundle.target.astype(np.int64)
    order = np.random.default_rng(derive_seed(settings.data_seed, "digits")).permutation(
        len(labels)
    )
    parts = [(order[800:], 1), (order[:300], 2), (order[300:800], 4)]
    train, val, test = (
        _images(images[rows], labels[rows], repeats, settings, stream)
        for stream, (rows, repeats) in enumerate(parts)
    )
    return train, val, test


def _images(
    images: NDArray[np.float32],
    labels: NDArray[np.int64],
    repeats: int,
    settings: DigitsSettings,
    stream: int,
) -> Images:
    rng = np.random.default_rng(derive_seed(settings.data_seed, "clutter", stream))
    side = settings.image_size
    sizes = [round(part * side) for part in DIGIT_SIZES]
    scaled = {size: _resize(images, size) for size in sizes}
    n = len(images) * repeats
    canvas = rng.normal(0.0, settings.noise, (n, side, side)).astype(np.float32)
    boxes = np.empty((n, 4), dtype=np.int64)
    for i in range(n):
        drawing = np.zeros((side, side), dtype=np.float32)
        for _ in range(settings.n_fragments):
            size = sizes[rng.integers(len(sizes))]
            h, w = rng.integers(size // 3, size // 2 + 1, 2)
            top, left = rng.integers(0, size - h + 1), rng.integers(0, size - w + 1)
            other = scaled[size][rng.integers(len(images))]
            piece = other[top : top + h, left : left + w]
            _draw(drawing, piece, rng.integers(side - h + 1), rng.integers(side - w + 1))
        size = sizes[rng.integers(len(sizes))]
        top, left = rng.integers(0, side - size + 1, 2)
        drawing[top : top + size, left : left + size] *= 0.3  # the digit stands in front
        _draw(drawing, scaled[size][i % len(images)], top, left)
        canvas[i] += drawing
        boxes[i] = left, top, left + size, top + size
    x = np.rint(np.clip(canvas, 0.0, 1.0) * 255).astype(np.uint8)
    return Images(x[:, None], np.tile(labels, repeats), boxes)


def _resize(images: NDArray[np.float32], size: int) -> NDArray[np.float32]:
    tensor = torch.from_numpy(images)[:, None]
    resized: NDArray[np.float32] = F.interpolate(tensor, (size, size), mode="bilinear")[
        :, 0
    ].numpy()
    return resized


def _draw(canvas: NDArray[np.float32], piece: NDArray[np.float32], top: int, left: int) -> None:
    h, w = piece.shape
    area = canvas[top : top + h, left : left + w]
    np.maximum(area, piece, out=area)
