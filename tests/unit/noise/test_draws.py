import math

import pytest
import torch
from torch import Tensor

from lupi.noise.layer import Draw, add_noise, shared_dims
from lupi.noise.sites import CHANNELS_FIRST, MAP, SEQUENCE, VECTOR, Layout

LAYOUTS = {
    "vector": (VECTOR, (4, 6)),
    "sequence": (SEQUENCE, (4, 5, 6)),
    "channels-first": (CHANNELS_FIRST, (4, 6, 5)),
    "map": (MAP, (4, 6, 5, 3)),
}


def distinct_draws(layout: Layout, shape: tuple[int, ...], draw: Draw) -> int:
    """Return how many different draws one example has."""
    noisy = add_noise(torch.ones(shape), torch.zeros(1), layout, draw)
    assert noisy[0].unique().numel() == noisy[1].unique().numel()
    assert noisy.unique().numel() == 4 * noisy[0].unique().numel()  # rows never share
    return int(noisy[0].unique().numel())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("vector", {"unit": 6, "example": 1}),
        ("sequence", {"unit": 30, "place": 5, "channel": 6, "example": 1}),
        ("channels-first", {"unit": 30, "place": 5, "channel": 6, "example": 1}),
        ("map", {"unit": 90, "place": 15, "channel": 6, "example": 1}),
    ],
)
def test_a_draw_is_shared_over_what_its_name_says(name: str, expected: dict[Draw, int]) -> None:
    layout, shape = LAYOUTS[name]
    assert {draw: distinct_draws(layout, shape, draw) for draw in expected} == expected


@pytest.mark.parametrize("draw", ["place", "channel"])
def test_vectors_have_no_places_to_share(draw: Draw) -> None:
    with pytest.raises(ValueError, match=f"draw: {draw} needs places"):
        shared_dims(draw, VECTOR)


@pytest.mark.parametrize("draw", ["unit", "channel"])
def test_mean_and_variance_are_those_asked_for(draw: Draw) -> None:
    h = torch.full((50_000, 2, 2), 3.0)
    logvar = torch.tensor([math.log(0.25), math.log(4.0)])
    z = add_noise(h, logvar, SEQUENCE, draw)
    assert z.mean((0, 1)).tolist() == pytest.approx([3.0, 3.0], abs=0.1)
    assert z.var((0, 1)).tolist() == pytest.approx([9 * 0.25, 9 * 4.0], rel=0.03)


def test_bernoulli_has_the_same_mean_and_variance_and_drops_a_region_together() -> None:
    logvar = torch.tensor([-20.0, math.log(4.0), math.log(4.0)]).view(1, 3, 1)  # three places
    z = add_noise(torch.ones(50_000, 3, 1), logvar, SEQUENCE, "example", "bernoulli")
    assert z.mean((0, 2)).tolist() == pytest.approx([1.0, 1.0, 1.0], abs=0.03)
    assert z.var((0, 2)).tolist() == pytest.approx([0.0, 4.0, 4.0], rel=0.03, abs=1e-6)
    assert torch.equal(z[:, 1], z[:, 2])
    assert (z[:, 1] == 0).float().mean().item() == pytest.approx(0.8, abs=0.01)


def test_shared_draws_do_not_average_out_over_places() -> None:
    """The equation of `add_noise`: n places with w_j h_j = 1 / n each."""
    n, logvar = 100, torch.zeros(1)
    h = torch.full((20_000, n, 1), 1 / n)
    alone = add_noise(h, logvar, SEQUENCE, "unit").sum((1, 2))
    together = add_noise(h, logvar, SEQUENCE, "channel").sum((1, 2))
    assert alone.var().item() == pytest.approx(1 / n, rel=0.05)
    assert together.var().item() == pytest.approx(1.0, rel=0.05)


def test_gradients() -> None:
    h = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    logvar = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)

    def noise(h: Tensor, logvar: Tensor) -> Tensor:
        torch.manual_seed(0)
        return add_noise(h, logvar, VECTOR)

    assert torch.autograd.gradcheck(noise, (h, logvar))
