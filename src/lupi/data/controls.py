"""Controls: x* that tells nothing of its row. A gain that survives them is not due to x*."""

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
        return xstar[_another_row(len(xstar), rng)]
    mean, std = xstar.mean(0, keepdims=True), xstar.std(0, keepdims=True)
    if control == "constant":
        return np.repeat(mean, len(xstar), axis=0)
    return rng.normal(mean, std, xstar.shape).astype(np.float32)


def control_boxes(
    boxes: NDArray[np.int64], control: Control, seed: int, height: int, width: int
) -> NDArray[np.int64]:
    """Apply a control to boxes (N, 4).

    shuffled: every picture gets another picture's box; constant: every picture gets the mean
    box; random: boxes of the same sizes at places drawn evenly over the picture.
    """
    if control == "real":
        return boxes
    rng = np.random.default_rng(derive_seed(seed, "control", control))
    if control == "shuffled":
        return boxes[_another_row(len(boxes), rng)]
    if control == "constant":
        return np.repeat(np.rint(boxes.mean(0, keepdims=True)).astype(np.int64), len(boxes), axis=0)
    sizes = (boxes[:, 2:] - boxes[:, :2])[_another_row(len(boxes), rng)]
    start = rng.integers(0, np.array([width, height]) - sizes + 1)
    return np.concatenate([start, start + sizes], axis=1)


def _another_row(n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return a permutation without fixed points (for n > 1): one cycle through all rows."""
    order = rng.permutation(n)
    other = np.empty(n, dtype=np.int64)
    other[order] = np.roll(order, 1)
    return other
