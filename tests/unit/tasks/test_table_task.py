import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from lupi.core import Task
from lupi.errors import LupiError
from lupi.loaders.tables.encoder import TableEncoder
from lupi.loaders.tables.vectors import VectorSplit
from lupi.tasks.table import TableRun, TableTask
from lupi.tasks.table_network import TableNetworkSettings
from made_table import HEADER, rows, settings_of, table_task, write_csv


def whole(split: Any) -> Any:
    assert isinstance(split, VectorSplit)
    return split.rows


def partial_task(tmp_path: Path) -> Task:
    """x* is missing: rain in every 2nd row, traffic in every 3rd, so both in every 6th."""
    made = rows()
    for i, row in enumerate(made):
        row[5] = "" if i % 2 == 0 else row[5]
        row[6] = "" if i % 3 == 0 else row[6]
    path = write_csv(tmp_path / "partial.csv", made)
    return TableTask(settings_of(path), TableNetworkSettings())


def run_of(task: Task, size: int, seed: int) -> TableRun:
    run = task.for_run(size, seed).run
    assert isinstance(run, TableRun)
    return run


def test_small_training_sets_are_parts_of_large_ones() -> None:
    task = table_task("late")
    small, large, other = (
        list(run_of(task, n, seed).parts["train"].frame.index)
        for n, seed in ((20, 3), (60, 3), (20, 4))
    )
    assert small == large[:20]
    assert set(small) != set(other)
    share, of_all = (whole(task.splits(n, 3).train).y.float().mean() for n in (20, 60))
    assert abs(share - of_all) < 0.05  # classes are as frequent as in the table


def test_means_and_scales_are_those_of_the_runs_rows() -> None:
    x = whole(table_task().splits(30, seed=0).train).x
    km = x[:, 0]
    assert km.mean().item() == pytest.approx(0, abs=1e-5)
    assert km.std(correction=0).item() == pytest.approx(1, abs=1e-5)
    assert whole(table_task().splits(30, seed=0).test).x[:, 0].mean().abs() > 1e-3


def test_only_training_rows_carry_xstar_unless_revealed() -> None:
    task = table_task().for_run(30, 0)
    splits = task.splits(30, 0)
    assert whole(splits.train).xstar.shape == (30, task.xstar_dim)
    assert whole(splits.val).xstar is None
    assert whole(splits.test).xstar is None
    revealed = whole(task.splits(30, 0, reveal=True).test)
    assert revealed.has_xstar.all()
    assert torch.equal(revealed.x, whole(splits.test).x)


def test_missing_privileged_values_are_partial_xstar(tmp_path: Path) -> None:
    task = partial_task(tmp_path)
    n = task.n_rows
    train = whole(task.splits(n, 0).train)
    without = (~train.has_xstar).sum().item()
    assert 0 < without < n // 3
    assert task.finding_counts == {"row without x*": 20}
    assert (train.xstar[~train.has_xstar] == 0).all()
    half = train.has_xstar & ((train.xstar == 0).sum(1) == 1)
    assert half.sum() > n // 4  # the one that is missing is the mean
    assert train.xstar[train.has_xstar].mean(0).abs().max() < 1e-5
    fewer = whole(task.splits(n, 0, xstar_frac=0.5).train).has_xstar
    assert fewer.sum() == math.ceil((n - without) / 2)
    assert not (fewer & ~train.has_xstar).any()


def test_shuffled_xstar_stays_among_the_rows_that_have_it(tmp_path: Path) -> None:
    task = partial_task(tmp_path)
    real, shuffled = (whole(task.splits(40, 0, c).train) for c in ("real", "shuffled"))
    assert torch.equal(real.has_xstar, shuffled.has_xstar)
    assert not torch.equal(real.xstar, shuffled.xstar)
    assert torch.equal(real.xstar.sum(0).round(decimals=3), shuffled.xstar.sum(0).round(decimals=3))


def test_a_run_predicts_new_rows_with_what_it_keeps() -> None:
    task = table_task("late")
    kept = json.loads(json.dumps(task.for_run(30, 2).fitted.preprocessing()))
    assert kept["target"] == {
        "name": "late",
        "kind": "classification",
        "classes": ["in time", "late"],
    }
    assert not {"rain", "traffic"} & {column["name"] for column in kept["features"]["columns"]}
    encoder = TableEncoder.from_json(kept["features"])
    frame = run_of(task, 30, 2).parts["test"].frame
    expected = whole(task.splits(30, 2).test).x
    assert np.array_equal(encoder.transform(frame), expected.numpy())
    new = pd.DataFrame([dict(zip(HEADER[:5], rows(1, seed=9)[0], strict=False))])
    assert encoder.transform(new).shape == (1, expected.shape[1])


def test_scores_of_numbers() -> None:
    task = table_task("hours").for_run(30, 0)
    y = torch.tensor([-1.0, 0.0, 1.0, 2.0])
    sure = torch.stack([y, torch.full((4,), -8.0)], 1)
    std = task.for_run(30, 0).fitted.preprocessing()["target"]["std"]
    scores = task.outcome.metrics(sure, y)
    assert scores["r2"] == 1
    assert scores["rmse"] == 0
    off = task.outcome.metrics(torch.stack([y + 0.5, torch.zeros(4)], 1), y)
    assert off["rmse"] == pytest.approx(0.5 * std)
    assert off["r2"] == pytest.approx(1 - 4 * 0.25 / 5)
    nll = 0.5 * (0.25 + math.log(2 * math.pi)) + math.log(std)
    assert off["log_likelihood"] == pytest.approx(-nll)
    mean = task.outcome.metrics(torch.tensor([0.5, 0.0]).expand(4, 2), y)
    assert mean["r2"] == pytest.approx(0, abs=1e-6)


def test_scores_of_classes() -> None:
    task = table_task("late", metric="auc")
    y = torch.tensor([0, 0, 0, 1])
    output = torch.tensor([[2.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 3.0]])
    scores = task.outcome.metrics(output, y)
    assert scores["accuracy"] == 0.75
    assert scores["balanced_accuracy"] == pytest.approx((2 / 3 + 1) / 2)
    assert scores["auc"] == 1
    assert (task.metric.name, task.metric.higher_is_better) == ("auc", True)
    assert not table_task("hours", metric="rmse").metric.higher_is_better


@pytest.mark.parametrize("target", ["hours", "late"])
def test_the_trivial_predictor_knows_the_target_alone(target: str) -> None:
    task = table_task(target)
    splits = task.splits(60, 0)
    trivial = task.outcome.trivial(splits.train, splits.test)
    y = whole(splits.test).y
    if target == "late":
        assert trivial["accuracy"] == pytest.approx(y.bincount().max().item() / len(y))
        assert trivial["auc"] == 0.5
    else:
        assert -0.2 < trivial["r2"] <= 0


def test_constant_predictions_say_nothing() -> None:
    for target in ("hours", "late"):
        task = table_task(target)
        assert task.outcome.is_uninformative(torch.ones(5, 2))
        assert not task.outcome.is_uninformative(torch.randn(5, 2))


@pytest.mark.parametrize(
    ("target", "metric"), [("hours", "accuracy"), ("late", "r2"), ("van", "auc")]
)
def test_a_metric_of_another_kind_is_refused(target: str, metric: str) -> None:
    with pytest.raises(LupiError, match=f"metric: '{metric}' does not fit .* choose among"):
        table_task(target, metric=metric)


def test_too_few_rows() -> None:
    with pytest.raises(LupiError, match="a training set of 61 rows was asked for; there are 60"):
        table_task().splits(61, 0)


def test_nothing_is_fitted_on_other_rows_than_the_runs(tmp_path: Path) -> None:
    """Change every row that the run does not train on: what it knows stays the same."""
    path = write_csv(tmp_path / "a.csv", rows())
    before = TableTask(settings_of(path), TableNetworkSettings()).for_run(30, 1)
    own = set(run_of(before, 30, 1).parts["train"].frame.index)
    other = ["1e6", "truck", "True", "1999-01-01", "", "9", "9", "99", "late"]
    changed = [row if i in own else other for i, row in enumerate(rows())]
    write_csv(path, changed)
    after = TableTask(settings_of(path), TableNetworkSettings()).for_run(30, 1)
    assert (
        after.for_run(30, 1).fitted.preprocessing() == before.for_run(30, 1).fitted.preprocessing()
    )
    assert run_of(after, 30, 1).xstar_layout == run_of(before, 30, 1).xstar_layout
    assert torch.equal(whole(after.splits(30, 1).train).x, whole(before.splits(30, 1).train).x)


def test_the_length_of_x_is_that_of_a_run() -> None:
    task = table_task()
    with pytest.raises(RuntimeError, match="call for_run"):
        task.network()
    run = task.for_run(30, 0)
    assert run.network()(whole(run.splits(30, 0).test).x).shape == (36, 2)


def test_auc_needs_both_classes_in_held_out_rows(tmp_path: Path) -> None:
    made = sorted(rows(90), key=lambda row: row[-1])  # first those in time, then the late ones
    header = [*HEADER, "day"]
    path = write_csv(tmp_path / "a.csv", [[*row, str(i)] for i, row in enumerate(made)], header)
    by_time = settings_of(path, "late", metric="auc", time="day")
    with pytest.raises(LupiError, match="auc needs rows of both classes; the test rows of seed 0"):
        TableTask(by_time, TableNetworkSettings()).splits(20, 0)
