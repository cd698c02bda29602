import math
from typing import Any

import numpy as np
import pytest

from lupi.errors import LupiError
from lupi_paper.theory.bounds import Bound, bernstein, proposition_1, proposition_2, where_below
from lupi_paper.theory.curves import BoundSettings, to_json

FIRST = {"max_loss": 2.0, "log_cover": math.log(50), "lipschitz": 3.0, "epsilon": 0.1, "delta": 0.1}
SECOND = {
    "n_outputs": 4,
    "log_paths": math.log(600),
    "log_path_norm": math.log(1.5),
    "xi": 0.05,
    "max_output": 2.0,
    "epsilon_y": 0.01,
    "delta": 0.1,
}


def test_proposition_1_by_hand() -> None:
    expected = 3.0 * 0.1 + 2.0 * math.sqrt((2 * 50 * math.log(2) + 2 * math.log(10)) / 400)
    assert proposition_1(**FIRST).at(400) == pytest.approx(expected)


def test_proposition_2_by_hand() -> None:
    inner = (0.05 + 1) * math.log(10) + 1.5 * (0.15 + 2.0) * math.log(6000)
    expected = 2 * 4 * inner / (3 * 400) + 9 * 0.01
    assert proposition_2(**SECOND).at(400) == pytest.approx(expected)  # type: ignore[arg-type]


def test_rates() -> None:
    slow = proposition_1(**{**FIRST, "epsilon": 0.0})
    fast = proposition_2(**{**SECOND, "epsilon_y": 0.0})  # type: ignore[arg-type]
    assert slow.at(400) / slow.at(100) == pytest.approx(1 / 2)
    assert fast.at(400) / fast.at(100) == pytest.approx(1 / 4)
    both = bernstein(loss_std=1e-3, max_loss=1.0, delta=0.05)
    assert both.at(40) / both.at(10) == pytest.approx(1 / 4, rel=0.02)
    assert both.at(4e12) / both.at(1e12) == pytest.approx(1 / 2, rel=0.02)


def test_bernstein_holds_in_a_simulation() -> None:
    """Of 2,000 samples no more than the share delta may lie outside, and the bound is no joke."""
    rng = np.random.default_rng(0)
    rate, n, delta = 0.02, 200, 0.1
    gaps = np.abs((rng.random((2000, n)) < rate).mean(axis=1) - rate)
    std = math.sqrt(rate * (1 - rate))
    bound = bernstein(loss_std=std, max_loss=1 - rate, delta=delta).at(n)
    assert (gaps > bound).mean() <= delta
    assert bound < 4 * gaps.max()


def test_lemma_1_needs_t_above_gamma_not_below() -> None:
    """The paper's condition is reversed: see docs/theory.md."""
    gamma, r = 2.0, 3.0

    def tropp(t: float) -> float:
        return math.exp(-(t**2) / 2 / (gamma**2 + r * t / 3))

    def simpler(t: float) -> float:
        return math.exp(-t / 2 / (gamma + r / 3))

    assert tropp(gamma / 2) > simpler(gamma / 2)
    assert tropp(gamma) == pytest.approx(simpler(gamma))
    assert tropp(2 * gamma) < simpler(2 * gamma)


def test_nothing_overflows() -> None:
    huge = proposition_2(**{**SECOND, "log_paths": 5000.0, "log_path_norm": 3000.0})  # type: ignore[arg-type]
    assert huge.log_at(1) == pytest.approx(math.log(8 / 3 * 2.15 * (5000 + math.log(10))) + 3000)
    assert huge.at(1) == math.inf
    assert proposition_1(**{**FIRST, "log_cover": 1e4}).log_at(1) == pytest.approx(
        math.log(2) + 0.5 * (math.log(2 * math.log(2)) + 1e4)
    )


def test_crossover_without_floors_is_the_squared_ratio() -> None:
    slow, fast = Bound(((0.5, math.log(3.0)),)), Bound(((1.0, math.log(60.0)),))
    ((begin, end),) = where_below(fast, slow)
    assert math.exp(begin) == pytest.approx(400)
    assert end is None
    ((begin, end),) = where_below(slow, fast)
    assert begin == 0
    assert end is not None
    assert math.exp(end) == pytest.approx(400)


def test_crossover_with_floors() -> None:
    slow = Bound(((0.0, math.log(0.1)), (0.5, math.log(3.0))))
    fast = Bound(((0.0, math.log(0.15)), (1.0, math.log(20.0))))
    ((begin, end),) = where_below(fast, slow)
    assert end is not None
    # 20 u^2 - 3 u + 0.05 = 0 with u = 1 / sqrt(n)
    low, high = sorted(np.roots([20, -3, 0.05]))
    assert (math.exp(begin), math.exp(end)) == pytest.approx((high**-2, low**-2))
    high_floor = Bound(((0.0, math.log(9.0)), (1.0, 0.0)))
    assert where_below(high_floor, slow) == []
    assert where_below(slow, high_floor) == [(0.0, None)]


def test_bounds_that_only_meet_far_beyond_their_bends_still_cross() -> None:
    slow, both = Bound(((0.5, math.log(1.001)),)), Bound(((0.5, 0.0), (1.0, 0.0)))
    ((begin, end),) = where_below(both, slow)
    assert math.exp(begin) == pytest.approx(1e6, rel=1e-6)
    assert end is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"delta": 1.0}, "delta: got 1.0, expected a finite number above 0 and below 1"),
        ({"max_loss": 0.0}, "max_loss: got 0.0, expected a finite number above 0"),
        ({"log_cover": -1.0}, "log_cover: got -1.0, expected a finite number 0 or more"),
        ({"lipschitz": math.nan}, "lipschitz: got nan"),
    ],
)
def test_outside_the_domain_of_proposition_1(change: dict[str, Any], message: str) -> None:
    with pytest.raises(LupiError, match=message):
        proposition_1(**{**FIRST, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"xi": 0.2}, "xi: got 0.2 with delta 0.1; Proposition 2 is stated for xi <= delta"),
        ({"n_outputs": 0}, "n_outputs: got 0, expected a finite number 1 or more"),
        ({"log_path_norm": math.inf}, "log_path_norm: got inf"),
    ],
)
def test_outside_the_domain_of_proposition_2(change: dict[str, Any], message: str) -> None:
    with pytest.raises(LupiError, match=message):
        proposition_2(**{**SECOND, **change})


def test_n_is_a_count() -> None:
    with pytest.raises(LupiError, match="got 0, expected 1 or more"):
        bernstein(loss_std=1.0, max_loss=1.0, delta=0.1).at([10, 0])


def test_json_of_the_illustration() -> None:
    document = to_json(BoundSettings(sizes=(100, 10_000)))
    first, last = document["log10_bounds"]["Proposition 2"]
    assert first - last == pytest.approx(2)
    (smaller,) = document["proposition_2_is_smaller"]
    assert smaller["until_log10_n"] is None
