"""Cluttered digits: a real handwritten digit at a random place among fragments of others.

Made from the digits that scikit-learn has too (1,797 images of 8x8; `digits.npz` is a copy, because
to import scikit-learn takes longer than an epoch): E. Alpaydin, C. Kaynak, "Optical Recognition of
Handwritten Digits", UCI Machine Learning Repository, 1998, CC BY 4.0.

x is the image, x* the digit's box, y the digit. Each seed divides the digits anew into training,
validation and test digits, and draws its own places, fragments and pixel noise; fragments come from
digits of the same part.
"""

from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch.nn import functional as F

from lupi.core import derive_seed
from lupi.loaders.images.batches import Images
from lupi.settings import TaskSettings

DIGITS = Path(__file__).with_name("digits.npz")
DIGIT_SIZES = (0.5, 0.5625, 0.625)
"""Height and width of a digit, as parts of the image's."""
N_DIGITS = 1797
N_VAL, N_TEST = 300, 500
"""Digits of one seed; the others are for training."""
VAL_REPEATS, TEST_REPEATS = 2, 4
"""Images of each digit, in different clutter."""

Floats = NDArray[np.float32]


class DigitsSettings(TaskSettings):
    """Settings of the images."""

    name: Literal["digits"] = "digits"
    image_size: int = Field(24, ge=16, le=128)
    """Height and width in pixels."""
    n_fragments: int = Field(5, ge=0, le=50)
    """Number of fragments of other digits."""
    noise: float = Field(0.1, ge=0, le=1)
    """Standard deviation of the pixel noise; white is 1."""
    data_seed: int = Field(0, ge=0)
    """Seed of the images; changes them for every seed."""


@lru_cache(maxsize=12)
def make_digits(settings: DigitsSettings, seed: int) -> tuple[Images, Images, Images]:
    """Return training (997), validation (300 digits, twice) and test (500, four times) images."""
    images, labels = _load()
    purpose = (settings.data_seed, "digits", seed)
    order = np.random.default_rng(derive_seed(*purpose)).permutation(len(labels))
    train, val, test = (
        _images(
            images[rows],
            labels[rows],
            repeats,
            settings,
            np.random.default_rng(derive_seed(*purpose, part)),
        )
        for part, rows, repeats in (
            ("train", order[N_VAL + N_TEST :], 1),
            ("val", order[:N_VAL], VAL_REPEATS),
            ("test", order[N_VAL : N_VAL + N_TEST], TEST_REPEATS),
        )
    )
    return train, val, test


@lru_cache(maxsize=1)
def _load() -> tuple[Floats, NDArray[np.int64]]:
    """Return 1,797 handwritten digits (N, 8, 8) with values in [0, 1], and their classes (N,)."""
    with np.load(DIGITS, allow_pickle=False) as file:
        return file["images"].astype(np.float32) / 16.0, file["labels"].astype(np.int64)


class _Patches(NamedTuple):
    """One piece of a digit for each of N images: (N,) each, and the pixels (N, P, P)."""

    pixels: Floats
    """Zero beyond height and width."""
    top: NDArray[np.int64]
    left: NDArray[np.int64]


def _images(
    images: Floats,
    labels: NDArray[np.int64],
    repeats: int,
    settings: DigitsSettings,
    rng: np.random.Generator,
) -> Images:
    side = settings.image_size
    sizes = np.array([round(part * side) for part in DIGIT_SIZES])
    largest = int(sizes.max())
    scaled = _all_sizes(images, sizes)  # (sizes, digits, largest, largest)
    n = len(images) * repeats
    drawing = np.zeros((n, side + largest, side + largest), dtype=np.float32)  # with a margin
    for _ in range(settings.n_fragments):
        _draw(drawing, _fragments(scaled, sizes, n, side, rng))
    which = rng.integers(len(sizes), size=n)
    size = sizes[which]
    top, left = rng.integers(0, side - size + 1), rng.integers(0, side - size + 1)
    place = np.arange(side + largest)
    rows, columns = (
        (place >= start[:, None]) & (place < (start + size)[:, None]) for start in (top, left)
    )
    drawing[rows[:, :, None] & columns[:, None, :]] *= 0.3  # the digit stands in front
    _draw(drawing, _Patches(scaled[which, np.arange(n) % len(images)], top, left))
    canvas = rng.normal(0.0, settings.noise, (n, side, side)) + drawing[:, :side, :side]
    x = np.rint(np.clip(canvas, 0.0, 1.0) * 255).astype(np.uint8)
    boxes = np.stack([left, top, left + size, top + size], 1)
    return Images(x[:, None], np.tile(labels, repeats), boxes)


def _fragments(
    scaled: Floats, sizes: NDArray[np.int64], n: int, side: int, rng: np.random.Generator
) -> _Patches:
    """Cut a random piece of a random digit for each image, and choose its place."""
    which = rng.integers(len(sizes), size=n)
    size = sizes[which]
    height, width = (rng.integers(size // 3, size // 2 + 1) for _ in range(2))
    top, left = rng.integers(0, size - height + 1), rng.integers(0, size - width + 1)
    digit = rng.integers(scaled.shape[1], size=n)
    offsets = np.arange(int(sizes.max()) // 2)
    padded = np.pad(scaled, ((0, 0), (0, 0), (0, len(offsets)), (0, len(offsets))))
    pixels = padded[
        which[:, None, None],
        digit[:, None, None],
        (top[:, None] + offsets)[:, :, None],
        (left[:, None] + offsets)[:, None, :],
    ]
    inside = (offsets < height[:, None])[:, :, None] & (offsets < width[:, None])[:, None, :]
    return _Patches(
        pixels * inside, rng.integers(side - height + 1), rng.integers(side - width + 1)
    )


def _all_sizes(images: Floats, sizes: NDArray[np.int64]) -> Floats:
    """Return the digits in every size, in the upper left corner of (largest, largest)."""
    largest = int(sizes.max())
    scaled = np.zeros((len(sizes), len(images), largest, largest), dtype=np.float32)
    for i, size in enumerate(sizes.tolist()):
        resized = F.interpolate(torch.from_numpy(images)[:, None], (size, size), mode="bilinear")
        scaled[i, :, :size, :size] = resized[:, 0].numpy()
    return scaled


def _draw(drawing: Floats, patches: _Patches) -> None:
    """Lay one patch over each image; the brighter pixel is seen."""
    offsets = np.arange(patches.pixels.shape[-1])
    area = (
        np.arange(len(drawing))[:, None, None],
        (patches.top[:, None] + offsets)[:, :, None],
        (patches.left[:, None] + offsets)[:, None, :],
    )
    drawing[area] = np.maximum(drawing[area], patches.pixels)
