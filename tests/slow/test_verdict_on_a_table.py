"""The simulation behind docs/verdict.md on a real table of 41,188 rows: minutes."""

import importlib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NAME = "shared/data/tables/bank-additional-full.csv"
TABLE = next((path for folder in ROOT.parents if (path := folder / NAME).exists()), None)
N_TRIALS = 300
SLACK = 3 * (0.05 * 0.95 / N_TRIALS) ** 0.5

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(TABLE is None, reason=f"no {NAME} above the project"),
]


@pytest.fixture
def simulate(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "examples/verdict"))
    return importlib.import_module("simulate")


@pytest.mark.parametrize("place", range(6))
def test_wrong_verdicts_are_rare(simulate: Any, place: int) -> None:
    population = simulate.Population.read(TABLE)
    _, fixed, until_decided = simulate.wrong_verdicts(population, simulate.SETUPS[place], N_TRIALS)
    assert fixed <= 0.05 + SLACK
    assert until_decided <= 0.05 + SLACK


@pytest.mark.parametrize("place", range(4))
def test_intervals_cover_the_difference_between_unequal_arms(simulate: Any, place: int) -> None:
    population, setup = simulate.Population.read(TABLE), simulate.COVERAGE_SETUPS[place]
    assert simulate.coverage_on_table(population, setup, N_TRIALS) >= 0.93 - SLACK / 3
