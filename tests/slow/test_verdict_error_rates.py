"""Error rates, coverage and power of the verdict, with enough trials to hold it to its aims."""

import numpy as np
import pytest

import verdict_errors as verdict

pytestmark = pytest.mark.slow
N_TRIALS = 1500
SLACK = 3 * np.sqrt(0.05 * 0.95 / N_TRIALS)


@pytest.mark.parametrize("kind", verdict.NOISE)
@pytest.mark.parametrize("shape", verdict.SHAPES, ids=str)
def test_wrong_claims(kind: str, shape: verdict.Shape) -> None:
    assert verdict.wrong_claims(kind, shape, 8, N_TRIALS) <= 0.05 + SLACK


@pytest.mark.parametrize("shape", verdict.SHAPES, ids=str)
def test_wrong_helps(shape: verdict.Shape) -> None:
    assert verdict.wrong_helps(shape, 8, N_TRIALS) <= 0.025 + SLACK


@pytest.mark.parametrize("shape", verdict.SHAPES, ids=str)
def test_looks(shape: verdict.Shape) -> None:
    slack = 3 * np.sqrt(0.05 * 0.95 / 300)
    assert verdict.wrong_until_decided(shape, 300) <= 0.05 + slack


@pytest.mark.parametrize("pool", verdict.POOLS, ids=str)
def test_shared_rows(pool: verdict.Pool) -> None:
    assert verdict.wrong_on_pools(pool, 8, N_TRIALS)[0] <= 0.05 + SLACK


@pytest.mark.parametrize("n_seeds", [6, 8, 12])
@pytest.mark.parametrize("kind", [kind for kind in verdict.NOISE if "skewed" not in kind])
def test_coverage(kind: str, n_seeds: int) -> None:
    assert verdict.coverage(kind, n_seeds, N_TRIALS) >= 0.93


def test_power() -> None:
    good = np.zeros((10, 1))
    good[0] = 2.0
    assert verdict.power(verdict.SHAPES[3], good, 8, N_TRIALS)[0] >= 0.8
    sizes = verdict.power(verdict.Shape(1, 1, 2), np.array([[3.0, 0.0]]), 6, N_TRIALS)
    assert sizes[0] >= 0.7
    both = verdict.power(verdict.SHAPES[1], np.full((1, 2), 1.5), 8, N_TRIALS)
    assert both[:2].mean() >= 0.7
    assert verdict.power_until_decided(1.0, N_TRIALS)[0] >= 0.78
