import numpy as np
import pytest
from scipy import stats

from lupi.evidence.paired import (
    holm,
    mean_interval,
    paired_difference,
    sign_flip_p,
    smallest_p,
)


def test_six_positive_differences_reach_two_in_sixty_four() -> None:
    other = np.array([0.50, 0.52, 0.48, 0.51, 0.49, 0.53])
    found = paired_difference(other + np.linspace(0.01, 0.06, 6), other)
    assert found.p_value == 2 / 64
    assert found.mean == pytest.approx(0.035)


def test_sign_flips_by_hand() -> None:
    # Sums of ±1 ±2 ±3: 6 4 2 0 0 -2 -4 -6. Observed 1 + 2 - 3 = 0, then -1 + 2 + 3 = 4.
    assert sign_flip_p([1.0, 2.0, -3.0]) == 1.0
    assert sign_flip_p([-1.0, 2.0, 3.0]) == 4 / 8


def test_zeros_carry_no_evidence() -> None:
    assert sign_flip_p([0.1, 0.2, 0.3, 0.0, 0.0]) == sign_flip_p([0.1, 0.2, 0.3]) == 2 / 8


def test_swapping_the_arms_swaps_the_sign_alone() -> None:
    a, b = np.random.default_rng(0).normal(size=(2, 9))
    there, back = paired_difference(a, b), paired_difference(b, a)
    assert there.mean == -back.mean
    assert there.p_value == back.p_value


def test_agrees_with_scipy_called_directly() -> None:
    a, b = np.random.default_rng(1).normal(size=(2, 10))
    a += 0.8
    found = paired_difference(a, b)
    direct = stats.bootstrap((a - b,), np.mean, random_state=np.random.default_rng(0))
    assert found.interval == pytest.approx(tuple(direct.confidence_interval))
    swaps = stats.permutation_test(
        (a, b),
        lambda x, y, axis: np.mean(x - y, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
    )
    assert found.p_value == pytest.approx(swaps.pvalue)


def test_same_call_same_numbers() -> None:
    a, b = np.random.default_rng(2).normal(size=(2, 20))
    assert paired_difference(a, b) == paired_difference(a, b)
    assert mean_interval(a) == mean_interval(a)


def test_sixteen_seeds_are_exact_and_more_are_sampled_with_correction() -> None:
    assert sign_flip_p(np.arange(1.0, 17.0)) == 2 / 2**16
    assert sign_flip_p(np.arange(1.0, 41.0)) == 2 / (2**16 + 1)
    unclear = np.random.default_rng(3).normal(0.3, 1.0, size=40)
    # With 40 seeds the mean is close to normal, so the t-test is a good check.
    assert sign_flip_p(unclear) == pytest.approx(stats.ttest_1samp(unclear, 0.0).pvalue, rel=0.05)


@pytest.mark.parametrize("n_seeds", [2, 6, 16, 40])
def test_smallest_p_is_what_equal_signs_reach(n_seeds: int) -> None:
    assert smallest_p(n_seeds) == sign_flip_p(np.arange(1.0, n_seeds + 1))


def test_smallest_p_without_pairs_to_flip() -> None:
    assert smallest_p(0) == smallest_p(1) == 1.0


def test_one_seed_has_a_mean_only() -> None:
    found = paired_difference([0.75], [0.5])
    assert found == (0.25, None, None)
    assert mean_interval([0.75]) is None
    assert mean_interval([]) is None


def test_without_spread_the_interval_is_none_but_the_test_holds() -> None:
    other = np.array([0.50, 0.52, 0.48, 0.51, 0.49, 0.53])
    found = paired_difference(other + 0.1, other)  # differences equal up to rounding
    assert found.interval is None
    assert found.p_value == 2 / 64
    assert paired_difference(other, other) == (0.0, None, 1.0)
    assert mean_interval([0.3, 0.3, 0.3]) is None


def test_rounding_is_no_difference() -> None:
    other = np.array([0.50, 0.52, 0.48, 0.51, 0.49, 0.53])
    assert paired_difference(np.nextafter(other, 1.0), other) == (0.0, None, 1.0)


def test_one_diverged_seed_hides_no_other_difference() -> None:
    found = paired_difference([1e12, 1.1, 1.2, 1.3], [1.0, 1.0, 1.0, 1.0])
    assert found.p_value == 2 / 16


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_non_finite_scores_are_rejected(bad: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        paired_difference([0.1, bad], [0.1, 0.2])
    with pytest.raises(ValueError, match="finite"):
        mean_interval([0.1, bad])


@pytest.mark.parametrize("arms", [([0.1, 0.2], [0.1]), ([], [])])
def test_arms_without_common_seeds_are_rejected(arms: tuple[list[float], list[float]]) -> None:
    with pytest.raises(ValueError, match="same seeds"):
        paired_difference(*arms)


def test_holm_worked_example() -> None:
    # Sorted 0.005 0.01 0.03 0.04 times 4 3 2 1 = 0.02 0.03 0.06 0.04, then never decreasing.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_holm_is_capped_and_keeps_one_and_none() -> None:
    assert holm([0.6, 0.9]) == [1.0, 1.0]
    assert holm([0.03]) == [0.03]
    assert holm([]) == []
