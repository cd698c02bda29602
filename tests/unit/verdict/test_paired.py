import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from lupi.verdict.statistics.paired import (
    Floats,
    PairedTest,
    mean_interval,
    p_above_zero,
    paired_differences,
    smallest_p,
)

DIFFERENCES = np.array([0.3, -0.1, 0.4, 0.25, 0.05, 0.6, -0.2])


def by_flipping(differences: Floats) -> float:
    """The share of all sign flips whose sum is at least as large."""
    n = len(differences)
    signs = 1 - 2 * (np.arange(2**n)[:, None] >> np.arange(n) & 1)
    return float((signs @ differences >= differences.sum() - 1e-12).mean())


def test_p_is_that_of_all_sign_flips() -> None:
    test = PairedTest(DIFFERENCES)
    assert test.p_above() == by_flipping(DIFFERENCES)
    assert test.p_below() == by_flipping(-DIFFERENCES)
    assert test.p_above(0.1) == by_flipping(DIFFERENCES - 0.1)


def test_a_bound_excludes_zero_exactly_if_p_is_small() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        test = PairedTest(rng.normal(0.8, 1.0, size=7), correlation=0.05)
        for alpha in (0.01, 0.02, 0.05):
            assert (test.low(alpha) > 0) == (test.p_above() <= alpha)
            assert (test.high(alpha) < 0) == (test.p_below() <= alpha)


def test_too_few_seeds_have_no_bound() -> None:
    test = PairedTest([0.1, 0.2, 0.15, 0.12, 0.3])
    assert (test.low(0.025), test.high(0.025)) == (-math.inf, math.inf)
    assert test.low(1 / 32) == 0.1
    assert test.smallest_p == smallest_p(5) == 1 / 32


def test_seeds_without_spread_are_no_replicates() -> None:
    """Eight equal differences passed for eight replicates, and p was 0.008."""
    test = PairedTest([0.1] * 8)
    assert (test.p_above(), test.p_below(), test.smallest_p) == (1.0, 1.0, 1.0)
    assert test.low(0.025) == -math.inf
    assert p_above_zero(np.full((1, 8), 0.1)).tolist() == [1.0]


def test_equal_scores_are_equal() -> None:
    scores = [0.1 + 0.2, 0.3, 0.7]
    differences = paired_differences(scores, [0.3, 0.1 + 0.2, 0.7])
    assert differences.tolist() == [0.0, 0.0, 0.0]
    test = PairedTest(np.zeros(8))
    assert (test.p_above(), test.p_below()) == (1.0, 1.0)
    assert (test.low(0.025), test.high(0.025)) == (0.0, 0.0)


def test_shared_rows_widen_the_interval_by_the_known_factor() -> None:
    alone, shared = PairedTest(DIFFERENCES), PairedTest(DIFFERENCES, correlation=0.2)
    factor = math.sqrt(1 + 7 * 0.2 / 0.8)
    mean = DIFFERENCES.mean()
    assert shared.low(0.02) == pytest.approx(mean - factor * (mean - alone.low(0.02)))
    assert shared.high(0.02) == pytest.approx(mean + factor * (alone.high(0.02) - mean))


def test_many_rows_at_once() -> None:
    rows = np.random.default_rng(1).normal(0.3, 1, size=(200, 8))
    for correlation in (0.0, 0.1):
        expected = [PairedTest(row, correlation).p_above() for row in rows]
        np.testing.assert_allclose(p_above_zero(rows, correlation), expected)


def test_above_16_seeds_a_sample_stands_for_all_flips() -> None:
    differences = np.random.default_rng(2).normal(0.4, 1, size=20)
    test = PairedTest(differences)
    t_test = stats.ttest_1samp(differences, 0, alternative="greater").pvalue
    assert test.p_above() == pytest.approx(t_test, rel=0.25)
    assert PairedTest(np.linspace(1, 2, 20)).p_above() == smallest_p(20) == 2**-16


@pytest.mark.parametrize("n_seeds", [6, 8, 12])
@pytest.mark.parametrize("kind", ["normal", "heavy tails", "two points"])
def test_the_interval_covers_whatever_symmetric_differences_there_are(
    n_seeds: int, kind: str
) -> None:
    """The bootstrap that was here covered 86, 88 and 91 % at 6, 8 and 10 seeds, not 95."""
    rng = np.random.default_rng(3)
    draw: Callable[[], Floats] = {
        "normal": lambda: rng.normal(size=n_seeds),
        "heavy tails": lambda: rng.standard_t(2, size=n_seeds),
        "two points": lambda: rng.choice([-1.0, 1.0], size=n_seeds) + rng.normal(0, 0.01, n_seeds),
    }[kind]
    n_trials = 1500
    covered = 0
    for _ in range(n_trials):
        test = PairedTest(0.5 + draw())
        covered += test.low(0.025) <= 0.5 <= test.high(0.025)
    assert covered / n_trials >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / n_trials)


def test_the_interval_of_a_mean_is_students() -> None:
    scores = [0.5, 0.52, 0.47, 0.55]
    expected = stats.t.interval(0.95, 3, np.mean(scores), stats.sem(scores))
    assert mean_interval(scores) == pytest.approx(expected)
    assert mean_interval([0.5]) is None
    assert mean_interval([0.5, 0.5]) is None


def test_wrong_input_is_rejected() -> None:
    with pytest.raises(ValueError, match="same seeds"):
        paired_differences([0.1, 0.2], [0.1])
    with pytest.raises(ValueError, match="finite"):
        PairedTest([0.1, float("nan")])
