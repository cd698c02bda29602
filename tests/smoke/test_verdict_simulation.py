"""The simulation behind docs/verdict.md, shortened: all arms are equal, so every claim is wrong."""

import importlib
from pathlib import Path
from typing import Any

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples/verdict"


@pytest.fixture
def simulate(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(EXAMPLE))
    return importlib.import_module("simulate")


def test_shared_rows_mislead_the_rule_before_and_not_this_one(simulate: Any) -> None:
    """Seeds that share half of their rows counted as replicates."""
    population = simulate.Population.read(None)
    before, fixed, until_decided = simulate.wrong_verdicts(population, simulate.SETUPS[2], 20)
    assert before >= 0.15
    assert fixed <= 0.1
    assert until_decided <= 0.1


@pytest.mark.parametrize("n_seeds", [6, 8, 12])
def test_intervals_cover(simulate: Any, n_seeds: int) -> None:
    for shape in ("normal", "heavy tails (t, 3 df)", "two clusters"):
        assert simulate.coverage(shape, n_seeds, 400) >= 0.93


def test_large_effects_are_found(simulate: Any) -> None:
    assert simulate.power(2.0, 10, 20)[1] > 0.9
    share, n_seeds = simulate.until_decided(3.0, 20)
    assert share > 0.9
    assert n_seeds < 9
