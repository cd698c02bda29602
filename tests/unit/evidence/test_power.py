import numpy as np
import pytest
from scipy import stats

from lupi.evidence.paired import sign_flip_p
from lupi.evidence.power import EXACT_UP_TO, MOST_SEEDS, chance_to_help, fewest_seeds, sign_flip_ps


@pytest.mark.parametrize("n_seeds", [2, 6, EXACT_UP_TO])
def test_many_tests_at_once_are_the_test(n_seeds: int) -> None:
    differences = np.random.default_rng(n_seeds).normal(0.3, 1, size=(12, n_seeds))
    differences[0] = 0.25  # ties
    expected = [sign_flip_p(row) for row in differences]
    assert sign_flip_ps(differences) == pytest.approx(expected)


def test_beyond_exact_flips_the_test_is_close() -> None:
    differences = np.random.default_rng(0).normal(0.5, 1, size=(4, 16))
    expected = np.array([sign_flip_p(row) for row in differences])
    spread = np.sqrt(expected * (1 - expected) / 2**11)
    assert (np.abs(sign_flip_ps(differences) - expected) < 4 * spread + 1e-3).all()


def test_without_gain_the_verdict_is_hardly_ever_helps() -> None:
    for n_controls in (1, 3):
        assert (chance_to_help(0.0, [0.01, 0.02], n_controls, 8) <= 0.05).all()


def test_power_is_that_of_a_paired_test() -> None:
    """Against one control at one size: close to the t-test's, which is a little stronger."""
    noise, gain, n = 0.01, 0.015, 12
    shift = gain / (np.sqrt(2) * noise) * np.sqrt(n)
    edge = stats.t.ppf(0.975, n - 1)
    t_test = stats.nct.sf(edge, n - 1, shift)
    assert chance_to_help(gain, [noise], 1, n)[0] == pytest.approx(t_test, abs=0.06)


def test_more_controls_and_more_sizes_take_more() -> None:
    alone = chance_to_help(0.02, [0.015], 1, 8)[0]
    controls = chance_to_help(0.02, [0.015], 3, 8)[0]
    sizes = chance_to_help(0.02, [0.015, 0.2, 0.2], 1, 8)[0]
    assert alone > controls + 0.05
    assert alone > sizes + 0.05


def test_too_few_seeds_detect_nothing() -> None:
    assert chance_to_help(1.0, [0.001], 1, 5)[0] == 0
    assert chance_to_help(1.0, [0.001], 1, 6)[0] == 1
    assert chance_to_help(1.0, [0.001] * 3, 1, 6).max() == 0
    assert chance_to_help(1.0, [0.0] * 3, 1, 7).min() == 1  # runs that do not scatter at all


def test_fewest_seeds() -> None:
    assert fewest_seeds(lambda n: np.array([0.0, n / 20]), 1, 0.8) == 16
    assert fewest_seeds(lambda n: np.array([0.0, n / 20]), 0, 0.8) is None
    assert fewest_seeds(lambda n: np.array([float(n == MOST_SEEDS)]), 0, 0.8) == MOST_SEEDS
