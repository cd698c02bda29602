import math

import pytest
import torch
from torch.distributions import Normal

from lupi.core.gaussian import gaussian_cross_entropy
from lupi.methods.teachers.distillation import imitation_loss

OUTPUT = torch.tensor([[0.3, math.log(4.0)], [-1.0, math.log(0.25)]])
"""N(0.3, 2^2) and N(-1, 0.5^2)"""


def test_of_a_number_it_is_the_negative_log_likelihood() -> None:
    y = torch.tensor([1.0, -1.2])
    expected = -Normal(torch.tensor([0.3, -1.0]), torch.tensor([2.0, 0.5])).log_prob(y)
    assert torch.allclose(gaussian_cross_entropy(OUTPUT, y), expected)


def test_of_a_distribution_it_is_the_mean_over_its_numbers() -> None:
    torch.manual_seed(0)
    draws = 0.5 + 1.5 * torch.randn(200_000, 1)
    expected = gaussian_cross_entropy(OUTPUT[:1].expand(len(draws), 2), draws[:, 0]).mean()
    found = gaussian_cross_entropy(OUTPUT[:1], torch.tensor([0.5]), torch.tensor([1.5**2]))
    assert found.item() == pytest.approx(expected.item(), rel=0.01)


def test_outputs_far_outside_stay_finite() -> None:
    wild = torch.tensor([[0.0, 1e6], [0.0, -1e6]], requires_grad=True)
    loss = gaussian_cross_entropy(wild, torch.tensor([1.0, 1.0])).sum()
    loss.backward()
    assert loss.isfinite()
    assert wild.grad is not None
    assert wild.grad.isfinite().all()


def test_a_student_of_numbers_that_agrees_has_the_least_loss() -> None:
    teacher = torch.tensor([[0.2, -0.5]])

    def loss(mean: float, logvar: float) -> float:
        student = torch.tensor([[mean, logvar]])
        return imitation_loss(student, teacher, 3.0, "gaussian").item()

    best = -0.5 + math.log(3)  # at temperature 3 the teacher's variance is thrice its own
    for mean, logvar in ((0.3, best), (0.1, best), (0.2, best + 0.1), (0.2, best - 0.1)):
        assert loss(0.2, best) < loss(mean, logvar)
