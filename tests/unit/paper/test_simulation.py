from typing import Any

import pytest

from lupi.errors import LupiError
from lupi_paper.theory.simulation import EstimatorRisk, OracleSettings, simulate


def measure(**changes: Any) -> dict[str, EstimatorRisk]:
    settings = {"sizes": [128, 512, 2048], "n_repeats": 60, **changes}
    return {m.name: m for m in simulate(OracleSettings.parse(settings, ""))}


def test_the_oracle_learns_at_the_fast_rate() -> None:
    measured = measure()
    assert measured["without"].slope == pytest.approx(-0.5, abs=0.08)
    assert measured["oracle"].slope == pytest.approx(-1.0, abs=0.12)
    for m in measured.values():
        low, high = m.slope_interval
        assert low < m.slope < high
        assert all(a < risk < b for risk, (a, b) in zip(m.risks, m.intervals, strict=True))


def test_it_is_the_row_s_own_variance_that_helps() -> None:
    measured = measure()
    assert measured["shuffled"].risks[-1] > 10 * measured["oracle"].risks[-1]
    assert abs(measured["shuffled"].slope) < 0.2


def test_noise_to_the_letter_does_not_learn() -> None:
    assert abs(measure()["dropout"].slope) < 0.05


def test_with_a_floor_below_the_noise_only_the_constant_is_better() -> None:
    measured = measure(floor=0.3)
    assert measured["oracle"].slope == pytest.approx(-0.5, abs=0.08)
    assert measured["oracle"].risks[-1] < measured["without"].risks[-1]


def test_with_equal_noise_x_star_says_nothing() -> None:
    measured = measure(floor=1.0)
    assert measured["oracle"].risks == pytest.approx(measured["without"].risks)


def test_the_same_settings_give_the_same_numbers() -> None:
    assert measure(seed=4) == measure(seed=4)
    assert measure(seed=4) != measure(seed=5)


@pytest.mark.parametrize(
    ("change", "message"),
    [({"floor": 2}, "floor: got 2"), ({"sizes": [128]}, "sizes"), ({"sizes": [8, 128]}, "sizes")],
)
def test_domain(change: dict[str, Any], message: str) -> None:
    with pytest.raises(LupiError, match=message):
        measure(**change)
