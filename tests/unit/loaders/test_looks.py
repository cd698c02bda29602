"""Images unlike the training images are marked, others are not."""

import numpy as np
from numpy.typing import NDArray

from lupi.loaders.images.looks import typical_looks, unlike

RNG = np.random.default_rng(0)


def images(n: int, low: float = 0.3, high: float = 0.6) -> NDArray[np.float32]:
    """Smooth images in colour."""
    coarse = RNG.uniform(low, high, (n, 3, 4, 4)).astype(np.float32)
    return coarse.repeat(8, 2).repeat(8, 3)


def test_only_what_training_did_not_show_is_marked() -> None:
    typical = typical_looks(images(60))
    assert unlike(images(500), typical) == {}
    grey = images(1).mean(1, keepdims=True).repeat(3, 1)
    noise = RNG.uniform(0.2, 0.7, (1, 3, 32, 32)).astype(np.float32)
    odd = np.concatenate([images(1), np.zeros((1, 3, 32, 32), np.float32), grey, noise])
    marked = unlike(odd, typical)
    assert list(marked) == [1, 2, 3]
    assert "brightness is 0.00" in marked[1]
    assert marked[2].startswith("unlike the training images: colour is 0.00, ")
    assert "detail is" in marked[3]


def test_a_student_without_ranges_marks_nothing() -> None:
    assert unlike(np.zeros((2, 3, 8, 8), np.float32), {}) == {}
