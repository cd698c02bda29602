import math

import pytest
import torch
from torch import Tensor, nn

from conftest import VectorTask
from lupi.core import Batch
from lupi.methods.regions.right_reasons import RightReasons, RightReasonsSettings
from made_words import WordTask
from reduced import losses_of


class LinearImages(VectorTask):
    """Images of one channel and 1 x 3 pixels; logits are (0, w x)."""

    w = (1.0, 2.0, 3.0)

    def __init__(self) -> None:
        super().__init__(xstar_kind="region", places="pixels")

    def network(self) -> nn.Module:
        linear = nn.Linear(3, 2, bias=False)
        linear.weight.data = torch.tensor([[0.0] * 3, self.w])
        return nn.Sequential(nn.Flatten(), linear)

    def example(self) -> Tensor:
        return torch.zeros(2, 1, 1, 3)


def slope(logit: float) -> float:
    """Return d/dz (log p + log(1 - p)) at the logit z."""
    return 1 - 2 / (1 + math.exp(-logit))


def test_gradients_outside_the_region_are_squared_and_summed() -> None:
    task = LinearImages()
    method = RightReasons(task.network(), task, RightReasonsSettings(weight=10.0, penalty="sum"))
    x = torch.tensor([0.1, 0.2, 0.1]).view(1, 1, 1, 3).repeat(2, 1, 1, 1)
    region = torch.tensor([0.0, 1.0, 0.0]).view(1, 1, 1, 3).repeat(2, 1, 1, 1)
    batch = Batch(x, torch.tensor([0, 1]), region, torch.tensor([True, False]))
    expected = 10.0 * slope(0.8) ** 2 * (1**2 + 3**2) / 2  # one of two rows has x*
    assert float(losses_of(method, batch).parts["reasons"]) == pytest.approx(expected, rel=1e-5)


def test_the_share_of_squared_gradients_outside_the_region() -> None:
    task = LinearImages()
    method = RightReasons(task.network(), task, RightReasonsSettings(weight=10.0))
    x = torch.tensor([0.1, 0.2, 0.1]).view(1, 1, 1, 3).repeat(2, 1, 1, 1)
    region = torch.tensor([0.0, 1.0, 0.0]).view(1, 1, 1, 3).repeat(2, 1, 1, 1)
    batch = Batch(x, torch.tensor([0, 1]), region, torch.tensor([True, False]))
    expected = 10.0 * (1**2 + 3**2) / (1**2 + 2**2 + 3**2) / 2  # one of two rows has x*
    assert float(losses_of(method, batch).parts["reasons"]) == pytest.approx(expected, rel=1e-5)


def test_a_word_has_the_gradient_of_a_factor_at_its_vector() -> None:
    task = WordTask([0.0, 1.0, 0.5, -0.25])
    method = RightReasons(task.network(), task, RightReasonsSettings(penalty="sum"))
    x, region = torch.tensor([[1, 2, 3]]), torch.tensor([[[1.0, 0.0, 0.0]]])
    batch = Batch(x, torch.tensor([1]), region, torch.tensor([True]))
    expected = slope(1.25) ** 2 * (0.5**2 + 0.25**2)
    assert float(losses_of(method, batch).parts["reasons"]) == pytest.approx(expected, rel=1e-5)


def test_the_penalty_makes_outside_weights_smaller() -> None:
    task = WordTask([0.0, 1.0, 0.5, -0.25])
    method = RightReasons(task.network(), task, RightReasonsSettings(weight=100.0))
    x, region = torch.tensor([[1, 2, 3]]), torch.tensor([[[1.0, 0.0, 0.0]]])
    batch = Batch(x, torch.tensor([1]), region, torch.tensor([True]))
    losses_of(method, batch).total.backward()
    weight = next(method.parameters())
    assert weight.grad is not None
    assert (weight.grad[2, 1] > 0) == (weight[2, 1] > 0)
    assert (weight.grad[3, 1] > 0) == (weight[3, 1] > 0)
