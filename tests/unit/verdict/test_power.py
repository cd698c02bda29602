import numpy as np
import pytest
from scipy import stats

from lupi.verdict.planning import FIRST_SHARE, MOST_SEEDS, chance_to_help, fewest_seeds


def test_without_gain_the_verdict_is_hardly_ever_helps() -> None:
    for n_controls in (1, 3):
        assert (chance_to_help(0.0, [0.01, 0.02], n_controls, 8) <= 0.05).all()


def test_power_is_that_of_a_paired_test() -> None:
    """Against one control at one size: close to the t-test's, which is a little stronger."""
    noise, gain, n = 0.01, 0.015, 12
    shift = gain / (np.sqrt(2) * noise) * np.sqrt(n)
    edge = stats.t.ppf(1 - FIRST_SHARE * 0.025, n - 1)
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
    assert chance_to_help(1.0, [0.001] * 3, 1, 6).min() == 1  # clear answers need no more
    assert chance_to_help(1.0, [0.001], 1, 6, n_other_arms=2)[0] == 1  # nor do other arms matter


def test_seeds_that_share_rows_take_more() -> None:
    alone = chance_to_help(0.02, [0.01], 1, 8)[0]
    shared = chance_to_help(0.02, [0.01], 1, 8, correlations=[0.2])[0]
    assert alone > shared + 0.2
    assert chance_to_help(0.0, [0.01], 1, 8, correlations=[0.2])[0] <= 0.05


def test_fewest_seeds() -> None:
    assert fewest_seeds(lambda n: np.array([0.0, n / 20]), 1, 0.8) == 16
    assert fewest_seeds(lambda n: np.array([0.0, n / 20]), 0, 0.8) is None
    assert fewest_seeds(lambda n: np.array([float(n == MOST_SEEDS)]), 0, 0.8) == MOST_SEEDS
