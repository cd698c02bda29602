"""LupiClassifier and LupiRegressor: scikit-learn's contract, and ours."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from lupi import LupiClassifier, LupiRegressor
from lupi.errors import LupiError
from lupi.methods.registry import methods

Array = NDArray[Any]
SHORT: dict[str, Any] = {"epochs": 4, "lr": 0.01, "n_hidden": 16, "random_state": 0}
FREE = {"beta": 0.01}


@parametrize_with_checks([LupiClassifier(**SHORT), LupiRegressor(**SHORT)])  # type: ignore[untyped-decorator]
def test_is_an_estimator(estimator: Any, check: Any) -> None:
    check(estimator)


def made(n: int = 120) -> tuple[Array, Array, Array]:
    """Return x, x* (how sure y is, and a distraction) and a number to predict."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5))
    level = rng.uniform(0, 2, n)
    target = 5 + 3 * (X[:, 0] - X[:, 1] + 0.5 * level * rng.normal(size=n))
    return X, np.stack([level, rng.normal(size=n)], 1), target


def named(target: Array) -> Array:
    return np.where(target > 5, "high", "low")


def fitted(method: str = "het-dropout", **options: Any) -> Any:
    X, XS, target = made()
    settings = FREE if method == "het-dropout" else None
    model = LupiClassifier(method, settings, **{**SHORT, **options})
    return model.fit(X, named(target), xstar=XS)


def test_categories_dates_and_gaps() -> None:
    X, XS, target = made(200)
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame["kind"] = np.where(target > 5, "old", "new")
    frame.loc[rng.random(200) < 0.2, ["a", "kind"]] = None
    model = LupiClassifier(**SHORT).fit(frame, named(target), xstar=XS)
    assert model.score(frame, named(target)) > 0.8
    assert list(model.feature_names_in_) == [*"abcde", "kind"]
    alone = frame.iloc[[3]].assign(kind=np.nan)  # whose columns are all numbers
    assert model.predict(alone).shape == (1,)
    unseen = frame.iloc[:2].assign(kind="strange")
    assert model.predict(unseen).shape == (2,)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"kind": "sort"}))
    numbers = LupiRegressor(**SHORT).fit(np.where(rng.random(X.shape) < 0.1, np.nan, X), target)
    assert np.isfinite(numbers.predict(X)).all()
    with pytest.raises(ValueError, match="had no missing values"):
        fitted().predict(np.full((1, 5), np.nan))


def test_one_thread_whatever_torch_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """It took all of them, three times as long on a busy machine."""
    X, XS, target = made()
    seen: set[int] = set()
    forward = torch.nn.Linear.forward

    def watched(self: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
        seen.add(torch.get_num_threads())
        return forward(self, x)

    monkeypatch.setattr(torch.nn.Linear, "forward", watched)
    torch.set_num_threads(2)
    try:
        LupiRegressor(**SHORT).fit(X, target, xstar=XS)
        assert seen == {1}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)


def test_a_grid_over_one_setting_of_the_method() -> None:
    X, XS, target = made(60)
    model = LupiRegressor(settings={"prior": 0.5}, **SHORT)
    grid = GridSearchCV(model, {"settings__beta": np.array([0.01, 0.1])}, cv=2)
    grid.fit(X, target, xstar=XS)
    best = grid.best_estimator_
    assert best.settings == {"prior": 0.5, "beta": grid.best_params_["settings__beta"]}
    assert model.settings == {"prior": 0.5}
    assert "settings__beta" not in clone(best).get_params(deep=False)


USEFUL = [
    n
    for n, m in methods().items()
    if "vector" in m.kinds and "classes" in m.output_kinds and not m.sees_xstar_at_test
    if not n.endswith("-official")  # which collapse so soon
]


@pytest.mark.parametrize("method", USEFUL)
def test_any_method_for_vectors(method: str) -> None:
    X, _, target = made()
    model = fitted(method)
    assert model.method_ == method
    assert model.score(X, named(target)) > 0.7
    has_variance = method in ("het-dropout", "het-likelihood")
    assert model.collapsed_ == (False if has_variance else None)


def test_numbers_come_with_their_deviation() -> None:
    X, XS, target = made(300)
    model = LupiRegressor(settings=FREE, **{**SHORT, "epochs": 15}).fit(X, target, xstar=XS)
    mean, std = model.predict(X, return_std=True)
    assert model.score(X, target) > 0.5
    assert ((target - mean) / std).std() == pytest.approx(1, abs=0.4)
    assert model.predict(X).shape == (300,)


def test_the_same_random_state_gives_the_same_numbers_whatever_torch_drew_before() -> None:
    X, _, _ = made()
    first = fitted().predict_proba(X)
    torch.manual_seed(123)
    state = torch.get_rng_state()
    assert np.array_equal(fitted().predict_proba(X), first)
    assert torch.equal(torch.get_rng_state(), state)
    assert not np.array_equal(fitted(random_state=1).predict_proba(X), first)


def test_xstar_takes_part_in_training_and_not_in_the_student() -> None:
    X, XS, target = made()
    other = LupiClassifier(settings=FREE, **SHORT).fit(X, named(target), xstar=XS[::-1])
    model = fitted()
    assert not np.array_equal(model.predict_proba(X), other.predict_proba(X))
    plain = LupiClassifier("no-xstar", **SHORT).fit(X, named(target))
    assert list(model.student_.state_dict()) == list(plain.student_.state_dict())
    with pytest.raises(TypeError):
        model.predict(X, XS)


def test_without_xstar_it_is_the_plain_model() -> None:
    X, XS, target = made()
    without = LupiClassifier(settings=FREE, **SHORT).fit(X, named(target))
    plain = LupiClassifier("no-xstar", **SHORT).fit(X, named(target), xstar=XS)
    assert without.method_ == "no-xstar"
    assert np.array_equal(without.predict_proba(X), plain.predict_proba(X))


def test_missing_xstar() -> None:
    X, XS, target = made()
    y = named(target)
    gaps = np.where(np.arange(len(y))[:, None] % 2, XS, np.nan)
    some = LupiClassifier(settings=FREE, **SHORT).fit(X, y, xstar=gaps)
    assert not np.array_equal(some.predict_proba(X), fitted().predict_proba(X))
    holes, filled = XS.copy(), XS.copy()
    holes[3, 1] = np.nan
    filled[3, 1] = np.delete(XS[:, 1], 3).mean()
    hole, mean = (
        LupiClassifier(settings=FREE, **SHORT).fit(X, y, xstar=v).predict_proba(X)
        for v in (holes, filled)
    )
    assert np.array_equal(hole, mean)


def test_pandas_and_sparse_input() -> None:
    X, XS, target = made()
    y = named(target)
    expected = fitted().predict_proba(X)
    frame, extra = pd.DataFrame(X, columns=list("abcde")), pd.DataFrame(XS, columns=["s", "t"])
    by_name = LupiClassifier(settings=FREE, **SHORT).fit(frame, pd.Series(y), xstar=extra)
    assert by_name.feature_names_in_.tolist() == list("abcde")
    assert np.array_equal(by_name.predict_proba(frame), expected)
    thin = LupiClassifier(settings=FREE, **SHORT).fit(
        sparse.csr_array(X), y, xstar=sparse.csr_array(XS)
    )
    assert np.array_equal(thin.predict_proba(sparse.csr_array(X)), expected)
    column = LupiClassifier(settings=FREE, **SHORT).fit(frame, y, xstar=extra["s"])
    assert column.method_ == "het-dropout"


def test_copies_predict_the_same() -> None:
    X, _, _ = made()
    model = fitted()
    expected = model.predict_proba(X)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), expected)
    assert clone(model).get_params() == model.get_params()
    assert not hasattr(clone(model), "student_")


def test_in_a_pipeline_and_a_grid_search_xstar_is_routed() -> None:
    X, XS, target = made(60)
    with sklearn.config_context(enable_metadata_routing=True):
        model = LupiClassifier(settings=FREE, **SHORT).set_fit_request(xstar=True)
        search = GridSearchCV(
            make_pipeline(StandardScaler(), model),
            {"lupiclassifier__settings": [{"beta": 0.01}, {"beta": 0.02}]},
            cv=2,
            n_jobs=1,
        ).fit(X, named(target), xstar=XS)
        assert search.best_estimator_[-1].method_ == "het-dropout"
        scores = cross_val_score(model, X, named(target), cv=2, params={"xstar": XS})
    assert scores.shape == (2,)


def test_in_other_processes() -> None:
    X, XS, target = made(60)
    model = LupiRegressor(settings=FREE, **SHORT)
    search = GridSearchCV(model, {"lr": np.array([0.01, 0.02])}, cv=2, n_jobs=2)
    search.fit(X, target, xstar=XS)
    assert search.cv_results_["mean_test_score"].shape == (2,)


def test_collapse_is_said() -> None:
    X, XS, target = made(60)
    with pytest.warns(UserWarning, match="no longer depends on x"):
        LupiClassifier(settings={"beta": 1000.0}, **SHORT).fit(X, named(target), xstar=0 * XS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "oracle"}, "method oracle predicts from x"),
        ({"method": "gocnn"}, "can't use x\\* of kind vector"),
        ({"method": "het"}, "did you mean `het-dropout`"),
        ({"settings": {"bta": 1}}, "settings.bta: no such key; did you mean `beta`"),
        ({"n_hidden": 0}, "network.n_hidden: got 0"),
        ({"epochs": 0}, "train.epochs: got 0"),
        ({"val_frac": 1.5}, "val_frac: got 1.5; expected a fraction"),
    ],
)
def test_mistakes_are_named(options: dict[str, Any], message: str) -> None:
    X, XS, target = made(40)
    with pytest.raises(LupiError, match=message):
        LupiClassifier(**{**SHORT, **options}).fit(X, named(target), xstar=XS)


def test_regression_refuses_a_method_for_classes() -> None:
    X, XS, target = made(40)
    with pytest.raises(LupiError, match="method miml-fcn can't train outputs of kind gaussian"):
        LupiRegressor("miml-fcn", **SHORT).fit(X, target, xstar=XS)


def test_divergence_is_said() -> None:
    X, _, target = made(40)
    model = LupiRegressor(**{**SHORT, "lr": 100.0, "n_layers": 8})
    with pytest.raises(
        LupiError, match="training diverged in its first epoch; use a smaller lr than 100"
    ):
        model.fit(X, target)
