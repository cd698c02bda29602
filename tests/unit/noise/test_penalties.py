import math

import pytest
import torch

from lupi.noise.layer import PENALTIES, STEEPEST, PenaltyName


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("l2", 5 / math.sqrt(2)),
        ("kl", ((math.exp(3) - 1 - 3) / 2 + (math.exp(-4) - 1 + 4) / 2) / 2),
    ],
)
def test_by_hand(name: PenaltyName, expected: float) -> None:
    assert PENALTIES[name](torch.tensor([[3.0, -4.0]])).item() == pytest.approx(expected)


def test_kl_is_that_of_two_normal_distributions() -> None:
    normal = torch.distributions.Normal
    d = torch.tensor([0.7])
    exact = torch.distributions.kl_divergence(normal(1, (0.35 * d / 0.7).exp()), normal(1.0, 1.0))
    assert PENALTIES["kl"](d[None]).item() == pytest.approx(exact.item(), rel=1e-5)


@pytest.mark.parametrize("name", PENALTIES)
def test_it_is_zero_at_the_prior_and_its_gradient_is_finite_everywhere(name: PenaltyName) -> None:
    d = torch.tensor([[0.0], [1e-3], [-60.0], [STEEPEST + 50]], requires_grad=True)
    penalty = PENALTIES[name](d)
    penalty.sum().backward()
    assert d.grad is not None
    assert penalty[0] == 0
    assert d.grad[0] == 0
    assert d.grad.isfinite().all()


@pytest.mark.parametrize("name", PENALTIES)
def test_only_the_papers_norm_holds_h_star_at_the_prior(name: PenaltyName) -> None:
    """A pull weaker than beta moves h* under a smooth penalty and not under a cusp."""
    d = torch.full((1, 1), 1e-4, requires_grad=True)
    PENALTIES[name](d).sum().backward()
    assert d.grad is not None
    assert (d.grad.abs().item() < 0.01) == (name == "kl")
