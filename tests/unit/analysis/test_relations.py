import numpy as np
import pytest
from scipy import stats

from lupi.analysis.relations import mean_difference, rank_correlation


def test_rank_correlation_is_scipy_s() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=50)
    b = a + rng.normal(size=50)
    found = rank_correlation(a, b)
    assert found is not None
    assert found.value == pytest.approx(stats.spearmanr(a, b).statistic)
    assert found.interval[0] < found.value < found.interval[1]
    assert found.is_clear


def test_the_interval_covers_what_it_says() -> None:
    """Spearman's correlation of two normals with r = 0.6 is 6/pi asin(0.3)."""
    rng = np.random.default_rng(1)
    true = 6 / np.pi * np.arcsin(0.3)
    n_hits = 0
    for _ in range(400):
        a = rng.normal(size=60)
        found = rank_correlation(a, 0.6 * a + 0.8 * rng.normal(size=60))
        assert found is not None
        n_hits += found.interval[0] < true < found.interval[1]
    assert 0.92 <= n_hits / 400 <= 0.98


def test_rows_that_are_not_finite_do_not_count() -> None:
    a, b = np.arange(30.0), np.arange(30.0) ** 2
    with_holes = np.where(a == 7, np.inf, a)
    assert rank_correlation(with_holes, b) == rank_correlation(np.delete(a, 7), np.delete(b, 7))


@pytest.mark.parametrize("a", [np.full(30, 0.7), 0.7 + 1e-9 * np.arange(30), np.arange(5.0)])
def test_what_does_not_vary_has_no_relation(a: np.ndarray) -> None:
    assert rank_correlation(a, np.arange(float(a.size))) is None
    assert mean_difference(a, a) is None


def test_mean_difference_by_hand() -> None:
    a, b = np.array([1.0, 3.0] * 8), np.array([0.0, 1.0] * 8)
    found = mean_difference(a, b)
    assert found is not None
    assert found.value == 1.5
    error = np.sqrt(a.var(ddof=1) / 16 + b.var(ddof=1) / 16)
    freedom = 15 * 2 * error**4 / (a.var(ddof=1) ** 2 + b.var(ddof=1) ** 2) * 128
    assert found.interval[1] - 1.5 == pytest.approx(error * stats.t.ppf(0.975, freedom), rel=1e-6)
