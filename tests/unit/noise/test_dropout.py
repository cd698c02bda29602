import copy
import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from lupi.noise import HeteroscedasticDropout, NoisyOutput
from lupi.noise.layer import LOGVAR_MAX, LOGVAR_MIN


def zero_linear(n_in: int, n_out: int) -> nn.Linear:
    layer = nn.Linear(n_in, n_out)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def inside_outside(mask: Tensor) -> Tensor:
    return 1 - mask  # variance 0 on the object, 1 elsewhere


def test_is_the_identity_in_eval() -> None:
    drop = HeteroscedasticDropout(nn.Linear(4, 8)).eval()
    h = torch.randn(5, 8)
    for output, penalty in (drop(h), drop(h, torch.randn(5, 4))):
        assert output is h
        assert penalty.tolist() == [0.0] * 5


def test_training_without_xstar_says_what_to_do() -> None:
    with pytest.raises(ValueError, match=r"call .eval\(\)"):
        HeteroscedasticDropout(nn.Linear(4, 8))(torch.randn(5, 8))


def test_starts_at_its_prior() -> None:
    torch.manual_seed(0)
    drop = HeteroscedasticDropout(zero_linear(1, 2), prior=0.49)
    z, penalty = drop(torch.ones(50_000, 2), torch.randn(50_000, 1))
    assert z.std().item() == pytest.approx(0.7, rel=0.02)
    assert penalty.shape == (50_000,)
    assert not penalty.any()


def test_variance_follows_xstar() -> None:
    torch.manual_seed(0)
    layer = nn.Linear(1, 1, bias=False)
    nn.init.ones_(layer.weight)
    drop = HeteroscedasticDropout(layer, budget="none")
    xstar = torch.tensor([[-2.0], [1.0]]).repeat(50_000, 1)
    z, _ = drop(torch.ones(100_000, 1), xstar)
    assert z[::2].var().item() == pytest.approx(math.exp(-2), rel=0.03)
    assert z[1::2].var().item() == pytest.approx(math.exp(1), rel=0.03)


def test_a_region_prior_keeps_the_map() -> None:
    torch.manual_seed(0)
    mask = torch.zeros(4000, 1, 8, 8)
    mask[..., :4] = 1
    drop = HeteroscedasticDropout(None, prior=inside_outside)
    z, _ = drop(torch.ones(4000, 2, 4, 4), mask)
    assert z[..., :2].std().item() < 0.01
    assert z[..., 2:].std().item() == pytest.approx(1, rel=0.02)


def test_penalty_does_not_change_with_batch_size() -> None:
    drop = HeteroscedasticDropout(nn.Linear(3, 4), beta=0.5)
    xstar = torch.randn(6, 3)
    once = drop(torch.randn(6, 4), xstar).penalty
    again = drop(torch.randn(18, 4), xstar.repeat(3, 1)).penalty
    assert (once > 0).all()
    assert torch.allclose(again, once.repeat(3))


def test_penalty_pulls_back_what_left_the_bounds() -> None:
    layer = zero_linear(1, 1)
    nn.init.constant_(layer.bias, LOGVAR_MIN - 5)
    drop = HeteroscedasticDropout(layer, budget="none")
    drop(torch.ones(2, 1), torch.zeros(2, 1)).penalty.mean().backward()
    assert layer.bias.grad is not None
    assert layer.bias.grad.item() < 0  # a step downhill raises the variance


@pytest.mark.parametrize(
    ("missing", "expected"),
    [("mean", (math.exp(0) + math.exp(2)) / 2), ("prior", 1.0), ("none", 0.0)],
)
def test_rows_without_xstar_follow_the_policy(missing: str, expected: float) -> None:
    torch.manual_seed(0)
    layer = nn.Linear(1, 1, bias=False)
    nn.init.ones_(layer.weight)
    drop = HeteroscedasticDropout(layer, budget="none", missing=missing)  # type: ignore[arg-type]
    xstar = torch.tensor([[0.0], [2.0], [7.0]]).repeat(40_000, 1)
    has = torch.tensor([True, True, False]).repeat(40_000)
    z, _ = drop(torch.ones(120_000, 1), xstar, has)
    assert z[2::3].var().item() == pytest.approx(expected, rel=0.03, abs=1e-3)


def test_rows_with_xstar_are_unaffected_by_rows_without() -> None:
    drop = HeteroscedasticDropout(nn.Linear(2, 3))
    xstar, h = torch.randn(6, 2), torch.randn(6, 3)
    has = torch.tensor([True, False] * 3)

    def of_rows_with(junk: float) -> tuple[Tensor, Tensor]:
        torch.manual_seed(0)
        z, penalty = drop(h, torch.where(has[:, None], xstar, junk), has)
        return z[has], penalty

    (z, penalty), (z_junk, penalty_junk) = of_rows_with(0.0), of_rows_with(1e9)
    assert torch.equal(z, z_junk)
    assert torch.equal(penalty, penalty_junk)


def test_all_missing_means_the_prior_and_no_penalty() -> None:
    torch.manual_seed(0)
    drop = HeteroscedasticDropout(nn.Linear(1, 1), prior=0.25)
    z, penalty = drop(
        torch.ones(50_000, 1), torch.zeros(50_000, 1), torch.zeros(50_000, dtype=torch.bool)
    )
    assert z.std().item() == pytest.approx(0.5, rel=0.03)
    assert not penalty.any()


@pytest.mark.parametrize("value", [1e38, -1e38, math.inf, -math.inf, math.nan, 0.0])
def test_no_input_makes_nan(value: float) -> None:
    net = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 3))
    drop = HeteroscedasticDropout(net)
    h = torch.randn(4, 3, requires_grad=True)
    z, penalty = drop(h, torch.full((4, 2), value))
    (z.sum() + penalty.sum()).backward()
    for tensor in (h, *net.parameters()):
        assert tensor.grad is None or tensor.grad.isfinite().all()


def test_variance_stays_within_bounds() -> None:
    layer = zero_linear(1, 2)
    with torch.no_grad():
        layer.bias.copy_(torch.tensor([-40.0, 40.0]))
    torch.manual_seed(0)
    z, _ = HeteroscedasticDropout(layer, budget="none")(
        torch.ones(50_000, 2), torch.zeros(50_000, 1)
    )
    assert z[:, 0].var().item() == pytest.approx(math.exp(LOGVAR_MIN), rel=0.03)
    assert z[:, 1].var().item() == pytest.approx(math.exp(LOGVAR_MAX), rel=0.03)


def test_integer_xstar_is_taken_as_numbers() -> None:
    drop = HeteroscedasticDropout(None, prior=inside_outside)
    mask = torch.tensor([[[[0, 1]]]])
    assert drop(torch.ones(1, 1, 1, 2), mask).output.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_keeps_the_dtype_of_the_activations(dtype: torch.dtype) -> None:
    drop = HeteroscedasticDropout(nn.Linear(2, 3))
    assert drop(torch.randn(4, 3).to(dtype), torch.randn(4, 2)).output.dtype == dtype


def test_works_in_double_precision() -> None:
    drop = HeteroscedasticDropout(nn.Linear(2, 3).double())
    noisy = drop(torch.randn(4, 3, dtype=torch.float64), torch.randn(4, 2))
    assert noisy.penalty.dtype == torch.float64


def test_under_autocast_variances_keep_full_precision() -> None:
    drop = HeteroscedasticDropout(nn.Linear(2, 3))
    h, xstar = torch.randn(4, 3, dtype=torch.bfloat16), torch.randn(4, 2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        noisy = drop(h, xstar)
    assert noisy.output.dtype == torch.bfloat16
    assert noisy.penalty.dtype == torch.float32


def test_compiles_to_one_graph_with_the_same_numbers() -> None:
    drop = HeteroscedasticDropout(nn.Linear(2, 3))
    h, xstar = torch.randn(4, 3), torch.randn(4, 2)
    compiled: Callable[[Tensor, Tensor], NoisyOutput] = torch.compile(
        drop, backend="aot_eager", fullgraph=True
    )
    torch.manual_seed(0)
    expected = drop(h, xstar)
    torch.manual_seed(0)
    for found, wanted in zip(compiled(h, xstar), expected, strict=True):
        assert torch.allclose(found, wanted)


def test_can_be_copied_after_a_pass() -> None:
    drop = HeteroscedasticDropout(nn.Linear(2, 3))
    drop(torch.randn(4, 3), torch.randn(4, 2))
    twin = copy.deepcopy(drop)
    assert twin.state_dict().keys() == drop.state_dict().keys()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"prior": -1.0}, "expected a finite variance"),
        ({"prior": math.nan}, "expected a finite variance"),
        ({"beta": -1.0}, "beta: got -1.0, expected a finite weight >= 0"),
        ({"distribution": "bernoulli"}, "gives h\\* no gradient"),
    ],
)
def test_bad_settings(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        HeteroscedasticDropout(nn.Linear(2, 3), **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("prior", [0.5, inside_outside])
def test_a_budget_keeps_the_mean_of_each_example(prior: object) -> None:
    mask = torch.zeros(3, 1, 4, 4)
    mask[:, :, :2] = 1
    hstar = nn.Conv2d(1, 1, 3, padding=1)
    drop = HeteroscedasticDropout(hstar, prior=prior, budget="example")  # type: ignore[arg-type]
    variance = drop.variance(torch.zeros(3, 5, 4, 4), mask)
    prior_variance = (variance.logvar - variance.offset).exp()
    mean, expected = (v.mean((1, 2, 3)) for v in (variance.logvar.exp(), prior_variance))
    assert torch.allclose(mean, expected, rtol=1e-4)
    assert variance.logvar.std() > 0.01


def test_a_budget_of_the_batch_moves_noise_from_row_to_row() -> None:
    drop = HeteroscedasticDropout(nn.Linear(2, 3), prior=0.5, budget="batch")
    has = torch.tensor([True, True, True, False])
    logvar = drop.variance(torch.zeros(4, 3), torch.randn(4, 2), has).logvar
    assert logvar[has].exp().mean().item() == pytest.approx(0.5, rel=1e-4)
    assert logvar[has].exp().mean(1).std() > 0.01


def test_strength_scales_the_variance() -> None:
    torch.manual_seed(0)
    drop = HeteroscedasticDropout(None, prior=1.0)
    drop.strength = 0.25
    z, _ = drop(torch.ones(50_000, 1), torch.zeros(50_000, 1))
    assert z.std().item() == pytest.approx(0.5, rel=0.02)
