import numpy as np
import pytest

from lupi.errors import LupiError
from lupi.subsets import nested_rows, rows_with_xstar

LABELS = np.array([0] * 50 + [1] * 30 + [2] * 20)


def test_small_sets_are_parts_of_large_ones() -> None:
    small, large = nested_rows(LABELS, 12, seed=3), nested_rows(LABELS, 60, seed=3)
    assert np.array_equal(small, large[:12])
    assert len(set(large)) == 60


def test_classes_are_balanced_as_far_as_they_reach() -> None:
    assert np.bincount(LABELS[nested_rows(LABELS, 12, seed=0)]).tolist() == [4, 4, 4]
    assert np.bincount(LABELS[nested_rows(LABELS, 90, seed=0)]).tolist() == [40, 30, 20]


def test_seeds_differ() -> None:
    assert not np.array_equal(nested_rows(LABELS, 12, seed=0), nested_rows(LABELS, 12, seed=1))


@pytest.mark.parametrize("size", [0, 101])
def test_impossible_sizes(size: int) -> None:
    with pytest.raises(LupiError, match=f"{size} rows was asked for; there are 100"):
        nested_rows(LABELS, size, seed=0)


def test_fractions_of_rows_with_xstar_are_nested() -> None:
    few, many = rows_with_xstar(200, 0.02, seed=0), rows_with_xstar(200, 0.5, seed=0)
    assert few.sum() == 4
    assert many.sum() == 100
    assert not (few & ~many).any()
    assert rows_with_xstar(200, 0.0, seed=0).sum() == 0
    assert rows_with_xstar(200, 1.0, seed=0).all()
    assert rows_with_xstar(200, 0.0001, seed=0).sum() == 1


def test_impossible_fraction() -> None:
    with pytest.raises(LupiError, match=r"must lie in \[0, 1\], got 1.5"):
        rows_with_xstar(10, 1.5, seed=0)
