"""Texts through scikit-learn's conventions."""

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

from lupi import LupiTextClassifier, LupiTextRegressor
from lupi.comparison.defaults import TEXT_ARMS
from lupi.errors import LupiError
from lupi.estimators.text import NOISE_AT_WORDS
from lupi.loaders.text.made_reviews import make_review

RNG = np.random.default_rng(0)
REVIEWS = [make_review(RNG) for _ in range(160)]
TEXTS = [text for text, _, _ in REVIEWS]
LABELS = np.array([label for _, label, _ in REVIEWS])
SPANS: list[Any] = [spans for _, _, spans in REVIEWS]
FAST: dict[str, Any] = {"method": "views", "epochs": 5, "random_state": 0}


def test_it_learns_with_rationales_and_predicts_without() -> None:
    model = LupiTextClassifier(**FAST).fit(TEXTS[:120], LABELS[:120], rationales=SPANS[:120])
    assert model.classes_.tolist() == ["bad", "good"]
    assert model.score(TEXTS[120:], LABELS[120:]) > 0.7
    probabilities = model.predict_proba(TEXTS[120:])
    assert probabilities.sum(1) == pytest.approx(1)
    assert (model.predict(TEXTS[120:]) == model.classes_[probabilities.argmax(1)]).all()
    assert model.method_ == "views"


def test_without_rationales_it_is_the_plain_model() -> None:
    model = LupiTextClassifier(**FAST).fit(TEXTS, LABELS)
    assert model.method_ == "no-xstar"


def test_the_same_seed_gives_the_same_model() -> None:
    first, second = (LupiTextClassifier(**FAST).fit(TEXTS, LABELS, SPANS) for _ in range(2))
    assert np.array_equal(first.predict_proba(TEXTS), second.predict_proba(TEXTS))
    other = LupiTextClassifier(**{**FAST, "random_state": 1}).fit(TEXTS, LABELS, SPANS)
    assert not np.array_equal(first.predict_proba(TEXTS), other.predict_proba(TEXTS))
    kept = pickle.loads(pickle.dumps(first))
    assert np.array_equal(first.predict_proba(TEXTS), kept.predict_proba(TEXTS))


def test_texts_do_not_depend_on_those_beside_them() -> None:
    model = LupiTextClassifier(**FAST).fit(TEXTS, LABELS, SPANS)
    together = model.predict_proba(TEXTS[:5])
    alone = np.concatenate([model.predict_proba([text]) for text in TEXTS[:5]])
    assert together == pytest.approx(alone, abs=1e-6)
    assert model.predict(["", "unheard of"]).shape == (2,)


def test_every_form_of_rationale_and_rows_without_one() -> None:
    given: list[Any] = [None] * len(TEXTS)
    for form in ([[0, 5]], ["it"], None):
        rationales = list(given)
        rationales[:2] = [form, None]
        texts = ["it is good", *TEXTS[1:]]
        LupiTextClassifier(**{**FAST, "epochs": 1}).fit(texts, LABELS, rationales)


def test_numbers_have_a_mean_and_a_deviation() -> None:
    y = np.array([len(text) for text in TEXTS], dtype=float)
    model = LupiTextRegressor(**FAST).fit(TEXTS, y, SPANS)
    mean, std = model.predict(TEXTS, return_std=True)
    assert mean.shape == std.shape == (160,)
    assert (std > 0).all()
    assert abs(mean.mean() - y.mean()) < y.std()


def test_it_can_be_cloned_piped_and_searched() -> None:
    assert is_classifier(LupiTextClassifier())
    assert is_regressor(LupiTextRegressor())
    model = clone(LupiTextClassifier(**FAST, lr=0.01))
    assert model.get_params()["lr"] == 0.01
    model.set_params(epochs=2)
    upper = FunctionTransformer(lambda texts: [text.upper() for text in texts])
    piped = Pipeline([("upper", upper), ("model", model)])
    piped.fit(TEXTS, LABELS, model__rationales=SPANS)
    assert piped.predict(TEXTS).shape == (160,)
    search = GridSearchCV(model, {"weight_decay": [0.0, 0.1]}, cv=2)
    search.fit(TEXTS, LABELS, rationales=SPANS)
    assert search.best_estimator_.method_ == "views"


@pytest.mark.filterwarnings("ignore:.*test estimator:sklearn.exceptions.SkipTestWarning")
@pytest.mark.parametrize("model", [LupiTextClassifier(), LupiTextRegressor()])
def test_what_scikit_learn_checks_of_texts_passes(model: Any) -> None:
    checked = check_estimator(model)
    assert {one["status"] for one in checked} == {"passed"}


@pytest.mark.parametrize(
    ("texts", "y", "rationales", "message"),
    [
        ("a text", LABELS, None, "expected a sequence of texts"),
        ([], [], None, "expected a sequence of texts"),
        ([1, 2], ["a", "b"], None, "entry 0 is 1"),
        (TEXTS[:2], LABELS[:3], None, "inconsistent numbers of samples"),
        (TEXTS[:2], ["a", "a"], None, "one class: "),
        (TEXTS[:2], ["a", "b"], [None], "1 for 2 texts"),
        (["good", "bad"], ["a", "b"], [None, [[0, 99]]], "rationale of text 1: span"),
        (["good", "bad"], ["a", "b"], ["[[", None], "rationale of text 0: .*not JSON"),
    ],
)
def test_bad_input_is_refused(texts: Any, y: Any, rationales: Any, message: str) -> None:
    with pytest.raises((ValueError, LupiError), match=message):
        LupiTextClassifier(**FAST).fit(texts, y, rationales)


def test_numbers_that_are_not_finite_and_oracles_are_refused() -> None:
    with pytest.raises(ValueError, match="not finite"):
        LupiTextRegressor(**FAST).fit(TEXTS[:2], [1.0, np.nan])
    with pytest.raises(LupiError, match="an estimator predicts from x alone"):
        LupiTextClassifier("oracle").fit(TEXTS, LABELS, SPANS)
    with pytest.raises(NotFittedError):
        LupiTextClassifier().predict(TEXTS)
    with pytest.raises(LupiError, match="did you mean `views`"):
        LupiTextClassifier("view").fit(TEXTS, LABELS, SPANS)


def test_its_noise_is_that_of_the_default_comparison() -> None:
    assert TEXT_ARMS["het-dropout"]["settings"] == NOISE_AT_WORDS
