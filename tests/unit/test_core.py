import pytest
import torch

from lupi.core import Batch
from lupi.errors import LupiError


def test_rows_that_lack_xstar_or_are_not_finite_are_zero() -> None:
    xstar = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, torch.nan], [torch.inf, 0.0]])
    has = torch.tensor([True, False, True, True])
    seen, present = Batch(torch.zeros(4, 1), torch.zeros(4), xstar, has).privileged()
    assert present.tolist() == [True, False, False, False]
    assert seen.tolist() == [[1.0, 2.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]


def test_a_split_without_xstar_says_so() -> None:
    with pytest.raises(LupiError, match="this split carries none"):
        Batch(torch.zeros(2, 1), torch.zeros(2)).privileged()
