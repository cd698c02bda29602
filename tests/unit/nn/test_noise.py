import copy
import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from lupi.nn.noise import (
    LOGVAR_MAX,
    LOGVAR_MIN,
    HeteroscedasticDropout,
    Norm,
    Reading,
    Reduce,
    divergence,
    fit_to,
    multiplicative_noise,
)


def zero_linear(n_in: int, n_out: int) -> nn.Linear:
    layer = nn.Linear(n_in, n_out)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def inside_outside(mask: Tensor) -> Tensor:
    return 1 - mask  # variance 0 on the object, 1 elsewhere


class TestMultiplicativeNoise:
    def test_mean_and_variance_are_those_asked_for(self) -> None:
        torch.manual_seed(0)
        h = torch.full((200_000, 2), 3.0)
        z = multiplicative_noise(h, torch.tensor([math.log(0.25), math.log(4.0)]))
        assert z.mean(0).tolist() == pytest.approx([3.0, 3.0], abs=0.06)
        assert z.var(0).tolist() == pytest.approx([9 * 0.25, 9 * 4.0], rel=0.02)

    def test_units_get_independent_draws(self) -> None:
        torch.manual_seed(0)
        z = multiplicative_noise(torch.ones(50_000, 2), torch.zeros(1))
        assert abs(torch.corrcoef(z.T)[0, 1].item()) < 0.02

    def test_shared_dimension_has_one_draw(self) -> None:
        z = multiplicative_noise(torch.ones(4, 7, 3), torch.zeros(1), shared_dims=(1,))
        assert torch.equal(z, z[:, :1].expand_as(z))
        assert z[0, 0, 0] != z[1, 0, 0]

    def test_gradients(self) -> None:
        h = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
        logvar = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)

        def noise(h: Tensor, logvar: Tensor) -> Tensor:
            torch.manual_seed(0)
            return multiplicative_noise(h, logvar)

        assert torch.autograd.gradcheck(noise, (h, logvar))


class TestFitTo:
    @pytest.mark.parametrize(
        ("values", "h", "expected"),
        [
            ((2, 5), (2, 5), (2, 5)),
            ((2, 5), (2, 9, 5), (2, 1, 5)),
            ((2, 5), (2, 5, 8, 8), (2, 5, 1, 1)),
            ((2, 1, 32, 32), (2, 5, 8, 8), (2, 1, 8, 8)),
            ((2, 5, 4, 4), (2, 5, 8, 8), (2, 5, 8, 8)),
            ((2, 5), (6, 5), (6, 5)),
        ],
    )
    def test_shapes(
        self, values: tuple[int, ...], h: tuple[int, ...], expected: tuple[int, ...]
    ) -> None:
        assert fit_to(torch.zeros(values), torch.zeros(h)).shape == expected

    def test_a_map_is_averaged_over_what_a_cell_covers(self) -> None:
        mask = torch.zeros(1, 1, 4, 4)
        mask[..., :2, :3] = 1
        assert fit_to(mask, torch.zeros(1, 8, 2, 2))[0, 0].tolist() == [[1.0, 0.5], [0.0, 0.0]]

    def test_rows_are_repeated_draw_by_draw(self) -> None:
        values = torch.tensor([[1.0], [2.0]])
        assert fit_to(values, torch.zeros(6, 1)).flatten().tolist() == [1, 2, 1, 2, 1, 2]

    def test_a_map_at_a_flat_site_is_refused(self) -> None:
        with pytest.raises(ValueError, match="can't be fitted to activations of shape"):
            fit_to(torch.zeros(2, 1, 4, 4), torch.zeros(2, 5))


class TestDivergence:
    @pytest.mark.parametrize(
        ("norm", "reduce", "expected"),
        [
            ("l1", "sum", 7.0),
            ("l1", "mean", 3.5),
            ("l2", "sum", 5.0),
            ("l2", "mean", 5 / math.sqrt(2)),
            ("l2-squared", "sum", 25.0),
            ("l2-squared", "mean", 12.5),
        ],
    )
    def test_by_hand(self, norm: Norm, reduce: Reduce, expected: float) -> None:
        d = divergence(torch.tensor([[4.0, -3.0]]), torch.tensor([[1.0, 1.0]]), norm, reduce)
        assert d.item() == pytest.approx(expected)

    def test_gradient_at_the_prior_is_finite(self) -> None:
        logvar = torch.zeros(2, 3, requires_grad=True)
        divergence(logvar, torch.zeros(2, 3)).sum().backward()
        assert logvar.grad is not None
        assert torch.equal(logvar.grad, torch.zeros(2, 3))


class TestHeteroscedasticDropout:
    def test_is_the_identity_in_eval(self) -> None:
        drop = HeteroscedasticDropout(nn.Linear(4, 8)).eval()
        h = torch.randn(5, 8)
        assert drop(h) is h
        assert drop(h, torch.randn(5, 4)) is h

    def test_training_without_xstar_says_what_to_do(self) -> None:
        with pytest.raises(ValueError, match=r"call .eval\(\)"):
            HeteroscedasticDropout(nn.Linear(4, 8))(torch.randn(5, 8))

    def test_starts_at_its_prior(self) -> None:
        torch.manual_seed(0)
        drop = HeteroscedasticDropout(zero_linear(1, 2), prior=0.49)
        z = drop(torch.ones(50_000, 2), torch.randn(50_000, 1))
        assert z.std().item() == pytest.approx(0.7, rel=0.02)
        assert drop.penalty().item() == 0

    def test_variance_follows_xstar(self) -> None:
        torch.manual_seed(0)
        layer = nn.Linear(1, 1, bias=False)
        nn.init.ones_(layer.weight)
        drop = HeteroscedasticDropout(layer)
        xstar = torch.tensor([[-2.0], [1.0]]).repeat(50_000, 1)
        z = drop(torch.ones(100_000, 1), xstar)
        assert z[::2].var().item() == pytest.approx(math.exp(-2), rel=0.03)
        assert z[1::2].var().item() == pytest.approx(math.exp(1), rel=0.03)

    def test_a_region_prior_keeps_the_map(self) -> None:
        torch.manual_seed(0)
        mask = torch.zeros(4000, 1, 8, 8)
        mask[..., :4] = 1
        drop = HeteroscedasticDropout(None, prior=inside_outside)
        z = drop(torch.ones(4000, 2, 4, 4), mask)
        assert z[..., :2].std().item() < 0.01
        assert z[..., 2:].std().item() == pytest.approx(1, rel=0.02)

    def test_penalty_does_not_change_with_batch_size(self) -> None:
        drop = HeteroscedasticDropout(nn.Linear(3, 4), beta=0.5)
        xstar = torch.randn(6, 3)
        drop(torch.randn(6, 4), xstar)
        once = drop.penalty().item()
        drop(torch.randn(18, 4), xstar.repeat(3, 1))
        assert once > 0
        assert drop.penalty().item() == pytest.approx(once, rel=1e-5)

    def test_penalty_pulls_back_what_left_the_bounds(self) -> None:
        layer = zero_linear(1, 1)
        nn.init.constant_(layer.bias, LOGVAR_MIN - 5)
        drop = HeteroscedasticDropout(layer)
        drop(torch.ones(2, 1), torch.zeros(2, 1))
        drop.penalty().backward()
        assert layer.bias.grad is not None
        assert layer.bias.grad.item() < 0  # a step downhill raises the variance

    @pytest.mark.parametrize(
        ("reading", "smaller"), [("official", 1.0), ("official-translation", math.exp(-3))]
    )
    def test_official_readings(self, reading: Reading, smaller: float) -> None:
        layer = zero_linear(1, 2)
        with torch.no_grad():
            layer.bias.copy_(torch.tensor([-3.0, 2.0]))
        drop = HeteroscedasticDropout(layer, beta=100.0, reading=reading)
        drop(torch.ones(3, 2), torch.zeros(3, 1))
        # log-variance ReLU(-3) or -3, and 2; norm of sigma over the whole batch tensor
        expected = 100 * math.sqrt(3 * (smaller + math.e**2))
        assert drop.penalty().item() == pytest.approx(expected, rel=1e-5)

    @pytest.mark.parametrize(
        ("missing", "expected"),
        [("mean", (math.exp(0) + math.exp(2)) / 2), ("prior", 1.0), ("none", 0.0)],
    )
    def test_rows_without_xstar_follow_the_policy(self, missing: str, expected: float) -> None:
        torch.manual_seed(0)
        layer = nn.Linear(1, 1, bias=False)
        nn.init.ones_(layer.weight)
        drop = HeteroscedasticDropout(layer, missing=missing)  # type: ignore[arg-type]
        xstar = torch.tensor([[0.0], [2.0], [7.0]]).repeat(40_000, 1)
        has = torch.tensor([True, True, False]).repeat(40_000)
        z = drop(torch.ones(120_000, 1), xstar, has)
        assert z[2::3].var().item() == pytest.approx(expected, rel=0.03, abs=1e-3)

    def test_rows_with_xstar_are_unaffected_by_rows_without(self) -> None:
        drop = HeteroscedasticDropout(nn.Linear(2, 3))
        xstar, h = torch.randn(6, 2), torch.randn(6, 3)
        has = torch.tensor([True, False] * 3)

        def of_rows_with(junk: float) -> tuple[Tensor, Tensor]:
            torch.manual_seed(0)
            z = drop(h, torch.where(has[:, None], xstar, junk), has)
            return z[has], drop.penalty()

        (z, penalty), (z_junk, penalty_junk) = of_rows_with(0.0), of_rows_with(1e9)
        assert torch.equal(z, z_junk)
        assert torch.equal(penalty, penalty_junk)

    def test_all_missing_means_the_prior_and_no_penalty(self) -> None:
        torch.manual_seed(0)
        drop = HeteroscedasticDropout(nn.Linear(1, 1), prior=0.25)
        z = drop(
            torch.ones(50_000, 1), torch.zeros(50_000, 1), torch.zeros(50_000, dtype=torch.bool)
        )
        assert z.std().item() == pytest.approx(0.5, rel=0.03)
        assert drop.penalty().item() == 0

    @pytest.mark.parametrize("value", [1e38, -1e38, math.inf, -math.inf, math.nan, 0.0])
    def test_no_input_makes_nan(self, value: float) -> None:
        net = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 3))
        drop = HeteroscedasticDropout(net)
        h = torch.randn(4, 3, requires_grad=True)
        (drop(h, torch.full((4, 2), value)).sum() + drop.penalty()).backward()
        for tensor in (h, *net.parameters()):
            assert tensor.grad is None or tensor.grad.isfinite().all()

    def test_variance_stays_within_bounds(self) -> None:
        layer = zero_linear(1, 2)
        with torch.no_grad():
            layer.bias.copy_(torch.tensor([-40.0, 40.0]))
        torch.manual_seed(0)
        z = HeteroscedasticDropout(layer)(torch.ones(50_000, 2), torch.zeros(50_000, 1))
        assert z[:, 0].var().item() == pytest.approx(math.exp(LOGVAR_MIN), rel=0.03)
        assert z[:, 1].var().item() == pytest.approx(math.exp(LOGVAR_MAX), rel=0.03)

    def test_n_samples_repeats_rows_once(self) -> None:
        first = HeteroscedasticDropout(nn.Linear(2, 3), n_samples=4)
        second = HeteroscedasticDropout(nn.Linear(2, 3), n_samples=4)
        xstar = torch.randn(5, 2)
        z = second(first(torch.randn(5, 3), xstar), xstar)
        assert z.shape == (20, 3)
        assert first.penalty().isfinite()

    def test_integer_xstar_is_taken_as_numbers(self) -> None:
        drop = HeteroscedasticDropout(None, prior=inside_outside)
        mask = torch.tensor([[[[0, 1]]]])
        assert drop(torch.ones(1, 1, 1, 2), mask).isfinite().all()

    @pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
    def test_keeps_the_dtype_of_the_activations(self, dtype: torch.dtype) -> None:
        drop = HeteroscedasticDropout(nn.Linear(2, 3))
        assert drop(torch.randn(4, 3).to(dtype), torch.randn(4, 2)).dtype == dtype

    def test_works_in_double_precision(self) -> None:
        drop = HeteroscedasticDropout(nn.Linear(2, 3).double())
        drop(torch.randn(4, 3, dtype=torch.float64), torch.randn(4, 2))
        assert drop.penalty().dtype == torch.float64

    def test_under_autocast_variances_keep_full_precision(self) -> None:
        drop = HeteroscedasticDropout(nn.Linear(2, 3))
        h, xstar = torch.randn(4, 3, dtype=torch.bfloat16), torch.randn(4, 2)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert drop(h, xstar).dtype == torch.bfloat16
        assert drop.penalty().dtype == torch.float32

    def test_compiles_to_one_graph_with_the_same_numbers(self) -> None:
        drop = HeteroscedasticDropout(nn.Linear(2, 3))
        h, xstar = torch.randn(4, 3), torch.randn(4, 2)
        compiled: Callable[[Tensor, Tensor], Tensor] = torch.compile(
            drop, backend="aot_eager", fullgraph=True
        )
        torch.manual_seed(0)
        expected = drop(h, xstar)
        torch.manual_seed(0)
        assert torch.allclose(compiled(h, xstar), expected)

    def test_can_be_copied_after_a_pass(self) -> None:
        drop = HeteroscedasticDropout(nn.Linear(2, 3))
        drop(torch.randn(4, 3), torch.randn(4, 2))
        twin = copy.deepcopy(drop)
        assert twin.state_dict().keys() == drop.state_dict().keys()
        with pytest.raises(RuntimeError, match="follows a forward pass"):
            twin.penalty()

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"prior": -1.0}, "expected a finite variance"),
            ({"prior": math.nan}, "expected a finite variance"),
            ({"beta": -1.0}, "expected >= 0"),
            ({"n_samples": 0}, "and >= 1"),
        ],
    )
    def test_bad_settings(self, arguments: dict[str, float], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            HeteroscedasticDropout(nn.Linear(2, 3), **arguments)  # type: ignore[arg-type]
