import itertools

import numpy as np
import pytest

from lupi.verdict.statistics.family import adjusted, threshold


def hochberg(p_values: list[float], alpha: float) -> list[bool]:
    """The procedure as its author gives it: find the largest p that passes, reject all below."""
    falling = sorted(p_values, reverse=True)
    for r, p_value in enumerate(falling):
        if p_value <= alpha / (1 + r):
            return [p <= p_value for p in p_values]
    return [False] * len(p_values)


def test_it_is_hochbergs_procedure() -> None:
    values = (0.001, 0.006, 0.012, 0.02, 0.3)
    for p_values in itertools.product(values, repeat=3):
        expected = hochberg(list(p_values), 0.025)
        for i, p_value in enumerate(p_values):
            others = [*p_values[:i], *p_values[i + 1 :]]
            assert (p_value <= threshold(others, 0.025)) == expected[i]
            assert (adjusted(p_value, others) <= 0.025) == expected[i]


def test_questions_with_clear_answers_cost_each_other_nothing() -> None:
    assert threshold([0.02] * 14, 0.025) == 0.025
    assert threshold([0.9] * 14, 0.025) == pytest.approx(0.025 / 15)
    assert threshold([], 0.025) == 0.025
    assert adjusted(0.01, [0.9, 0.9]) == pytest.approx(0.03)


def test_without_an_effect_few_families_have_a_rejection() -> None:
    rng = np.random.default_rng(0)
    n_trials = 4000
    shared = rng.normal(size=(n_trials, 1))
    from scipy.stats import norm

    p_values = norm.sf(np.sqrt(0.5) * shared + np.sqrt(0.5) * rng.normal(size=(n_trials, 6)))
    wrong = sum(any(hochberg(list(row), 0.05)) for row in p_values)
    assert wrong / n_trials <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / n_trials)
