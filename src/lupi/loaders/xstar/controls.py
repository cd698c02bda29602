"""Controls: uninformative x*. A gain that remains with them is not due to x*."""

import numpy as np
from numpy.typing import NDArray

from lupi.core import Control, derive_seed


def control_vectors(xstar: NDArray[np.float32], control: Control, seed: int) -> NDArray[np.float32]:
    """Apply a control to vectors (N, D).

    shuffled: every row gets another row's; constant: every row gets the mean; random: normal
    draws with the mean and standard deviation of each column.
    """
    if control == "real":
        return xstar
    rng = np.random.default_rng(derive_seed(seed, "control", control))
    if control == "shuffled":
        return xstar[another_row(len(xstar), rng)]
    mean, std = xstar.mean(0, keepdims=True), xstar.std(0, keepdims=True)
    if control == "constant":
        return np.repeat(mean, len(xstar), axis=0)
    return rng.normal(mean, std, xstar.shape).astype(np.float32)


def control_maps(maps: NDArray[np.float32], control: Control, seed: int) -> NDArray[np.float32]:
    """Apply a control to maps over places, (N, 1, …).

    shuffled: every row gets another row's; constant: every row gets the mean; random: every row
    gets another row's, moved around the edges to a place drawn evenly.
    """
    if control == "constant":
        return np.repeat(maps.mean(0, keepdims=True), len(maps), axis=0)
    if control == "real":
        return maps
    rng = np.random.default_rng(derive_seed(seed, "control", control))
    maps = maps[another_row(len(maps), rng)]
    if control == "shuffled":
        return maps
    places = maps.shape[2:]
    moves = rng.integers(0, places, (len(maps), len(places)))
    axes = tuple(range(1, 1 + len(places)))
    return np.stack([np.roll(m, move, axes) for m, move in zip(maps, moves, strict=True)])


def control_boxes(
    boxes: NDArray[np.int64], control: Control, seed: int, height: int, width: int
) -> NDArray[np.int64]:
    """Apply a control to boxes (N, 4), or to several a row (N, K, 4), some of them empty.

    shuffled: every image gets another image's boxes; constant: every image gets the mean
    box; random: boxes of the same sizes at places drawn evenly over the image.
    """
    if control == "real":
        return boxes
    rng = np.random.default_rng(derive_seed(seed, "control", control))
    if control == "shuffled":
        return boxes[another_row(len(boxes), rng)]
    if control == "constant":
        every = boxes.reshape(-1, 4)
        filled = every[(every[:, 2:] > every[:, :2]).all(1)]
        mean = np.zeros_like(boxes)
        mean.reshape(len(boxes), -1)[:, :4] = np.rint(filled.mean(0)) if len(filled) else 0
        return mean
    sizes = (boxes[..., 2:] - boxes[..., :2])[another_row(len(boxes), rng)]
    start = rng.integers(0, np.array([width, height]) - sizes + 1)
    return np.concatenate([start, start + sizes], axis=-1)


def control_masks(
    n: int, control: Control, seed: int, side: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return whose mask each of n images gets, and how far it is moved down and right (n, 2).

    shuffled: another image's; random: another image's, moved around the edges to a place
    drawn evenly. (constant is the mean of all masks: no one's.)
    """
    still = np.zeros((n, 2), dtype=np.int64)
    if control not in ("shuffled", "random"):
        return np.arange(n), still
    rng = np.random.default_rng(derive_seed(seed, "control", control))
    other = another_row(n, rng)
    return other, rng.integers(0, side, (n, 2)) if control == "random" else still


def another_row(n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return a permutation without fixed points (for n > 1): one cycle through all rows."""
    order = rng.permutation(n)
    other = np.empty(n, dtype=np.int64)
    other[order] = np.roll(order, 1)
    return other
