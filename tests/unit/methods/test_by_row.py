import pytest
import torch

from lupi.errors import LupiError
from lupi.methods.by_row import folds, normals, numbered


def test_numbers_of_a_row_do_not_depend_on_its_batch() -> None:
    rows = torch.arange(1000)
    every = normals(rows, 5, seed=3)
    some = torch.tensor([999, 0, 7])
    assert torch.equal(normals(some, 5, seed=3), every[some])
    assert not torch.equal(normals(some, 5, seed=4), every[some])


def test_numbers_are_standard_normal_and_differ_between_rows_and_places() -> None:
    drawn = normals(torch.arange(20_000), 4, seed=0)
    assert drawn.mean(0).abs().max() < 0.03
    assert (drawn.std(0) - 1).abs().max() < 0.03
    among = torch.corrcoef(torch.cat([drawn[:-1], drawn[1:]], 1).T) - torch.eye(8)
    assert among.abs().max() < 0.03
    assert (drawn.square().square().mean(0) - 3).abs().max() < 0.3


def test_folds_are_even_and_do_not_follow_the_order_of_rows() -> None:
    fold = folds(torch.arange(10_000), 5)
    assert fold.bincount().tolist() == pytest.approx([2000] * 5, rel=0.1)
    assert fold[::2].bincount().tolist() == pytest.approx([1000] * 5, rel=0.1)


def test_rows_without_numbers_are_refused() -> None:
    with pytest.raises(LupiError, match="random_dim needs rows of a table"):
        numbered(None, "random_dim")
