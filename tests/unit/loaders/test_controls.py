import numpy as np
import pytest

from lupi.core import Control
from lupi.loaders.xstar.controls import control_boxes, control_vectors

RNG = np.random.default_rng(0)
START = RNG.integers(0, 10, (200, 2))
BOXES = np.concatenate([START, START + RNG.integers(5, 20, (200, 2))], axis=1)
VECTORS = (RNG.normal(2, 3, (5000, 2))).astype(np.float32)


def test_real_is_untouched() -> None:
    assert control_boxes(BOXES, "real", 0, 32, 32) is BOXES
    assert control_vectors(VECTORS, "real", 0) is VECTORS


def test_shuffled_gives_every_row_another_rows() -> None:
    rows = np.arange(100, dtype=np.float32)[:, None]
    shuffled = control_vectors(rows, "shuffled", 0)
    assert sorted(shuffled[:, 0]) == list(range(100))
    assert (shuffled != rows).all()
    shuffled_boxes = control_boxes(BOXES, "shuffled", 0, 32, 32)
    assert sorted(map(tuple, shuffled_boxes)) == sorted(map(tuple, BOXES))
    assert not np.array_equal(shuffled_boxes, BOXES)


def test_constant_is_the_mean_of_all() -> None:
    assert len(np.unique(control_boxes(BOXES, "constant", 0, 32, 32), axis=0)) == 1
    constant = control_vectors(VECTORS, "constant", 0)
    assert constant[7] == pytest.approx(VECTORS.mean(0))


def test_random_has_the_scale_of_the_real_but_not_its_rows() -> None:
    random = control_vectors(VECTORS, "random", 0)
    assert random.mean(0) == pytest.approx(VECTORS.mean(0), abs=0.2)
    assert random.std(0) == pytest.approx(VECTORS.std(0), rel=0.05)
    assert abs(np.corrcoef(random[:, 0], VECTORS[:, 0])[0, 1]) < 0.05
    boxes = control_boxes(BOXES, "random", 0, 32, 32)
    assert (boxes[:, :2] >= 0).all()
    assert (boxes[:, 2:] <= 32).all()
    assert (boxes[:, 2:] > boxes[:, :2]).all()


@pytest.mark.parametrize("control", ["shuffled", "random"])
def test_controls_follow_the_seed(control: Control) -> None:
    first, again = (control_vectors(VECTORS, control, 5) for _ in range(2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, control_vectors(VECTORS, control, 6))
