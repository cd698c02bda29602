from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone

from conftest import digits_task
from lupi.classical.fitting import check_classical, score_classical
from lupi.classical.models import CLASSICAL, GradientBoosting, GradientBoostingSettings
from lupi.core import Splits
from lupi.core.outcomes import NUMBER_SCORES
from lupi.errors import LupiError
from lupi.loaders.tables.vectors import VectorSplit
from lupi.train.learners import find_learner
from lupi.train.run import run
from made_reviews import text_task
from made_runs import run_from
from made_table import rows, table_task, write_csv


def score(name: str, task: Any, splits: Splits) -> dict[str, dict[str, float]]:
    model = CLASSICAL[name]
    return score_classical(model, model.Settings(), task, splits, seed=0, n_threads=1)


@pytest.mark.parametrize(
    ("name", "target"),
    [(name, "late") for name in CLASSICAL] + [("gradient-boosting", "hours"), ("linear", "hours")],
)
def test_it_learns_from_x(name: str, target: str) -> None:
    task = table_task(target).for_run(60, 0)
    splits = task.splits(60, 0)
    scores = score(name, task, splits)
    assert set(scores) == {"val", "test"}
    assert (
        scores["test"][task.metric.name]
        > task.outcome.trivial(splits.train, splits.test)[task.metric.name]
    )


@pytest.mark.parametrize("name", CLASSICAL)
def test_test_rows_choose_nothing_and_xstar_only_in_svm_plus(name: str) -> None:
    task = table_task("late").for_run(60, 0)
    splits = task.splits(60, 0)
    assert isinstance(splits.train, VectorSplit)
    assert isinstance(splits.test, VectorSplit)
    rows = splits.train.rows
    assert rows.xstar is not None
    has = torch.ones(len(rows.y), dtype=torch.bool)
    blind = VectorSplit(rows._replace(xstar=torch.randn_like(rows.xstar), has_xstar=has))
    test = VectorSplit(splits.test.rows._replace(y=1 - splits.test.rows.y))
    expected = score(name, task, splits)
    found = score(name, task, replace(splits, test=test))
    assert found["val"] == expected["val"]
    assert found["test"] != expected["test"]
    uses_xstar = score(name, task, replace(splits, train=blind)) != expected
    assert uses_xstar == CLASSICAL[name].uses_xstar


def test_svm_plus_without_any_xstar_is_svm() -> None:
    task = table_task("late").for_run(60, 0)
    splits = task.splits(60, 0, "real", 0.0)
    assert score("svm-plus", task, splits)["test"]["accuracy"] == pytest.approx(
        score("svm", task, splits)["test"]["accuracy"], abs=1 / len(splits.test)
    )


@pytest.mark.parametrize("name", CLASSICAL)
def test_a_class_that_training_rows_lack(name: str) -> None:
    task = table_task("van").for_run(60, 0)  # bike, new, old
    splits = task.splits(60, 0)
    assert isinstance(splits.train, VectorSplit)
    for n_classes in (1, 2):
        some = splits.train.rows.y < n_classes
        rows = splits.train.rows.select(some)
        scores = score(name, task, Splits(VectorSplit(rows), splits.val, splits.test))
        assert 0 < scores["test"]["accuracy"] < 1


def test_images_are_refused() -> None:
    with pytest.raises(LupiError, match="linear needs vectors as x; x is \\(1, 24, 24\\) per row"):
        check_classical(CLASSICAL["linear"], digits_task())


def test_a_number_to_predict_is_refused_by_what_tells_classes_apart() -> None:
    with pytest.raises(LupiError, match="svm-plus is a classifier; the target is a number"):
        check_classical(CLASSICAL["svm-plus"], table_task("hours").for_run(60, 0))


def test_learners_are_methods_and_classical_models() -> None:
    assert find_learner("linear").name == "linear"
    assert find_learner("no-xstar").name == "no-xstar"
    with pytest.raises(LupiError, match="did you mean `gradient-boosting`"):
        find_learner("gradient-bosting")


@pytest.mark.parametrize("method", ["linear", "gradient-boosting", "het-dropout"])
def test_a_run_on_a_table(tmp_path: Path, method: str) -> None:
    path = write_csv(tmp_path / "deliveries.csv", rows())
    raw = {
        "task": {
            "name": "table",
            "path": str(path),
            "target": "hours",
            "privileged": ["rain", "traffic"],
            "ignore": ["late"],
        },
        "train": {"epochs": 2},
        "method": method,
        "size": 40,
        "seed": 1,
    }
    settings = run_from(raw)
    result = run(settings, tmp_path / "a")
    assert run(settings, tmp_path / "b") == result
    assert result["status"] == "finished"
    assert set(result["metrics"]["test"]) == set(NUMBER_SCORES)
    assert (tmp_path / "a/preprocessing.json").exists() == (method == "het-dropout")
    assert "rain" not in "".join(p.read_text() for p in (tmp_path / "a").glob("prep*.json"))
    write_csv(path, rows(seed=7))
    assert run_from(raw).run_id != settings.run_id
    with pytest.raises(LupiError, match="has changed since this run was planned"):
        run(settings, tmp_path / "c")


def test_classical_models_see_which_words_a_text_has() -> None:
    task = text_task(200).for_run(100, 0)
    numbers = text_task(60, kind="regression").for_run(30, 0)
    splits = task.splits(100, 0)
    trivial = task.outcome.trivial(splits.train, splits.test)
    assert score("linear", task, splits)["test"]["auc"] > 0.1 + trivial["auc"]
    scores = score("linear", numbers, numbers.splits(30, 0))
    assert set(scores["test"]) == set(NUMBER_SCORES)
    with pytest.raises(LupiError, match=r"svm-plus can't use x\* of kind region"):
        check_classical(CLASSICAL["svm-plus"], task)


@pytest.mark.parametrize("name", list(CLASSICAL))
def test_rows_count_by_their_weights(name: str) -> None:
    task = table_task("late").for_run(60, 0)
    splits = task.splits(60, 0)
    rows = next(iter(splits.train.batches(60)))
    is_right = torch.arange(60) % 2 == 0
    wrong = rows._replace(y=torch.where(is_right, rows.y, 1 - rows.y))
    found = [
        score(name, task, replace(splits, train=VectorSplit(train)))["test"]["auc"]
        for train in (wrong, wrong._replace(weights=is_right.float()), rows.select(is_right))
    ]
    assert found[1] > found[0] + 0.1
    if name in ("linear", "svm-plus"):  # others count rows for widths and leaves
        assert found[1] == pytest.approx(found[2], abs=1e-3)


@pytest.mark.parametrize("kind", ["classes", "gaussian"])
def test_boosted_models_that_share_trees_are_those_fitted_alone(kind: Any) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 3))
    y = (x[:, 0] > 0).astype(int) if kind == "classes" else x[:, 0] ** 2
    settings = GradientBoostingSettings(max_iter=(7, 2, 4), min_samples_leaf=(5, 9))
    shared = GradientBoosting.candidates(settings, kind, seed=1)
    for model, n_trees in zip(shared, (2, 2, 4, 4, 7, 7), strict=True):
        model.fit(x, y, sample_weight=np.abs(x[:, 1]))
        alone = clone(model._model).set_params(max_iter=n_trees)
        alone.fit(x, y, sample_weight=np.abs(x[:, 1]))
        assert alone.n_iter_ == n_trees
        if kind == "classes":
            assert np.array_equal(model.predict_proba(x), alone.predict_proba(x))
        else:
            assert np.array_equal(model.predict(x), alone.predict(x))
