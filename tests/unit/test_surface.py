"""The worth of x*: a surface that is known, one that does not fit, and what to buy."""

import math

import numpy as np
import pytest

from lupi.errors import LupiError
from lupi.worth import Point, Surface, fit_surface

LIMIT, SCALE, POWER, RATE, SHARE = 0.95, 0.25, 0.5, 2.0, 0.5


def true_score(n: float, m: float) -> float:
    effective: float = n * (1 + RATE * (m / n) ** SHARE)
    return LIMIT - SCALE * math.pow(effective / 100, -POWER)


def points(noise: float = 0.01, n_seeds: int = 8, seed: int = 0) -> list[Point]:
    random = np.random.default_rng(seed)
    of_seed = random.normal(0, noise, n_seeds)  # shared by all points of a seed
    return [
        Point(
            n,
            m,
            {s: true_score(n, m) + of_seed[s] + random.normal(0, noise) for s in range(n_seeds)},
        )
        for n in (50, 100, 200, 400)
        for m in (0, n // 10, n // 4, n // 2, n)
    ]


@pytest.fixture(scope="module")
def surface() -> Surface:
    return fit_surface(points(), "accuracy")


def test_it_finds_the_surface_that_the_scores_came_from(surface: Surface) -> None:
    assert surface.fits
    assert surface.helps
    for n, m in ((75, 0), (75, 30), (300, 300), (800, 100)):
        assert surface.score(n, m).value == pytest.approx(true_score(n, m), abs=0.015)
        assert surface.score(n, m).low < true_score(n, m) < surface.score(n, m).high


def test_the_first_xstar_are_worth_more_than_the_last(surface: Surface) -> None:
    first, last = surface.worth(120, 0, 30), surface.worth(120, 30, 120)
    true = [120 * RATE * (m / 120) ** SHARE for m in (30, 120)]
    assert first.low < true[0] / 30 < first.high
    assert last.low < (true[1] - true[0]) / 90 < last.high
    assert first.value > 2 * last.value


def test_intervals_hold_the_truth_at_points_that_were_not_fitted() -> None:
    inside = []
    for seed in range(12):
        every = points(seed=seed)
        fitted = fit_surface(
            [p for p in every if (p.n, p.m) not in ((200, 50), (100, 100))], "accuracy"
        )
        for n, m in ((200, 50), (100, 100)):
            found = fitted.score(n, m)
            inside.append(found.low <= true_score(n, m) <= found.high)
    assert np.mean(inside) >= 0.9


@pytest.mark.parametrize("xstar_cost", [0.2, 1.0, 4.0])
def test_no_other_mix_for_the_budget_is_better(surface: Surface, xstar_cost: float) -> None:
    mix = surface.best_mix(300, 1.0, xstar_cost)
    assert mix.cost <= 300 + 1e-9
    for n in range(80, 301, 5):
        m = min(n, math.floor((300 - n) / xstar_cost))
        if m >= 0:
            assert surface.score(n, m).value <= mix.score.value + 1e-12
    assert mix.gain.value == pytest.approx(mix.score.value - surface.score(300).value)


def test_cheap_xstar_is_bought_for_every_row_and_expensive_xstar_for_few(surface: Surface) -> None:
    cheap, dear = (surface.best_mix(300, 1.0, cost) for cost in (0.01, 10.0))
    assert cheap.m == cheap.n
    assert dear.m < 0.05 * dear.n


def test_xstar_without_effect_is_worth_nothing() -> None:
    random = np.random.default_rng(1)
    flat = [
        Point(n, m, {s: true_score(n, 0) + random.normal(0, 0.01) for s in range(8)})
        for n in (50, 100, 200, 400)
        for m in (0, n // 4, n)
    ]
    found = fit_surface(flat, "accuracy")
    assert not found.helps
    assert found.worth(200).value < 0.3


def test_scores_that_no_surface_explains_are_refused() -> None:
    random = np.random.default_rng(2)
    bumpy = [
        Point(
            n,
            m,
            {s: (0.6 if m else 0.8) + 0.1 * (n == 100) + random.normal(0, 0.005) for s in range(8)},
        )
        for n in (50, 100, 200, 400)
        for m in (0, n // 4, n)
    ]
    assert not fit_surface(bumpy, "accuracy").fits


def test_a_metric_where_lower_is_better() -> None:
    errors = [p._replace(scores={s: 1 - v for s, v in p.scores.items()}) for p in points()]
    found = fit_surface(errors, "error", higher_is_better=False)
    assert found.score(300, 300).value == pytest.approx(1 - true_score(300, 300), abs=0.015)
    assert found.score(300, 300).low < found.score(300, 300).high
    assert found.best_mix(300, 1, 0.2).gain.value > 0


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"budget": 0}, "budget"),
        ({"budget": 10_000}, "measured"),
        ({"label_cost": -1}, "label_cost"),
        ({"xstar_cost": 0}, "xstar_cost"),
        ({"xstar_cost": math.nan}, "xstar_cost"),
    ],
)
def test_impossible_budgets_are_refused(
    surface: Surface, changes: dict[str, float], word: str
) -> None:
    with pytest.raises(LupiError, match=word):
        surface.best_mix(**{"budget": 300, "label_cost": 1, "xstar_cost": 1, **changes})


def test_nothing_is_predicted_beyond_twice_the_largest_size(surface: Surface) -> None:
    with pytest.raises(LupiError, match="twice"):
        surface.score(801)
    with pytest.raises(LupiError, match="m <= n"):
        surface.score(100, 101)


@pytest.mark.parametrize(
    ("keep", "word"),
    [
        (lambda p: p.n == 100, "one size"),
        (lambda p: p.m == 0, "no point with x"),
        (lambda p: p.n < 200 and p.m in (0, p.n), "4 points"),
    ],
)
def test_too_few_points_are_refused(keep: object, word: str) -> None:
    with pytest.raises(LupiError, match=word):
        fit_surface([p for p in points() if keep(p)], "accuracy")  # type: ignore[operator]


def test_one_fraction_means_that_every_xstar_is_worth_the_same() -> None:
    found = fit_surface([p for p in points() if p.m in (0, p.n)], "accuracy")
    assert found.worth(200, 0, 50).value == pytest.approx(found.worth(200, 50, 200).value)
