import pytest
import torch

from lupi.core import Batch
from lupi.errors import LupiError
from lupi.loaders.xstar.reveal import append_xstar


def test_a_vector_is_appended_to_a_vector() -> None:
    batch = Batch(
        torch.ones(2, 3), torch.zeros(2), torch.full((2, 2), 7.0), torch.tensor([True, False])
    )
    assert append_xstar(batch).x.tolist() == [[1, 1, 1, 7, 7, 1], [1, 1, 1, 0, 0, 0]]


def test_a_region_is_appended_at_its_place() -> None:
    x, mask = torch.rand(2, 3, 4, 5), torch.rand(2, 1, 4, 5)
    shown = append_xstar(Batch(x, torch.zeros(2), mask, torch.tensor([True, True]))).x
    assert torch.equal(shown, torch.cat([x, mask, torch.ones(2, 1, 4, 5)], 1))


def test_a_vector_is_repeated_at_every_place_of_a_image() -> None:
    vector = torch.tensor([[1.0, 2.0]])
    shown = append_xstar(
        Batch(torch.rand(1, 3, 4, 5), torch.zeros(1), vector, torch.tensor([True]))
    )
    assert shown.x.shape == (1, 6, 4, 5)
    assert (shown.x[0, 3] == 1).all()
    assert (shown.x[0, 4] == 2).all()


def test_sequences_are_refused() -> None:
    batch = Batch(torch.zeros(1, 2, 3), torch.zeros(1), torch.zeros(1, 2), torch.tensor([True]))
    with pytest.raises(LupiError, match="x is 3-D"):
        append_xstar(batch)
