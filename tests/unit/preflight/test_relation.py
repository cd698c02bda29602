import numpy as np
import pytest

from lupi.preflight.relation import Ridge, compare_features, relation


def draw(
    n: int = 120, n_features: int = 4, seed: int = 0
) -> tuple[np.ndarray, np.random.Generator]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, n_features)), rng


def test_errors_are_those_of_fits_without_the_row() -> None:
    x, rng = draw(30)
    y = x[:, :1] + rng.normal(size=(30, 1))
    found = Ridge(x).errors(y)[:, 0]
    for row in (0, 7):
        others = np.delete(np.arange(30), row)
        design = np.column_stack([np.ones(29), x[others]])
        weights = np.linalg.lstsq(design, y[others], rcond=None)[0]
        expected = y[row, 0] - (np.append(1, x[row]) @ weights)[0]
        assert found[row] == pytest.approx(expected, rel=1e-3)


def test_a_relation_is_seen() -> None:
    x, rng = draw()
    found = relation(x, x[:, :1] + rng.normal(size=(120, 1)), rng)
    assert found.is_seen
    assert 0.3 < found.r2 < 0.7


def test_p_values_are_uniform_without_a_relation() -> None:
    p_values = []
    for seed in range(60):
        x, rng = draw(40, seed=seed)
        p_values.append(relation(x, rng.normal(size=(40, 2)), rng).p_value)
    assert np.mean(np.array(p_values) <= 0.05) <= 0.12
    assert 0.35 < np.mean(p_values) < 0.65


def test_more_features_than_rows_are_shrunk() -> None:
    x, rng = draw(50, 400)
    assert relation(x, x[:, :3].sum(1, keepdims=True), rng).r2 < 1
    assert Ridge(x).r2(rng.normal(size=(50, 1))) < 0.3


def test_constant_features_predict_nothing() -> None:
    rng = np.random.default_rng(0)
    assert Ridge(np.ones((20, 3))).r2(rng.normal(size=(20, 1))) == pytest.approx(0, abs=1e-9)


def test_features_are_compared_with_those_of_chance() -> None:
    x, rng = draw()
    y = x[:, :1] + rng.normal(size=(120, 1))
    others = [rng.permutation(x) for _ in range(39)]
    assert compare_features(x, others, y).p_value == 1 / 40
    assert not compare_features(others[0], others[1:], y).is_seen
