"""Weights of rows and of classes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lupi.core import Batch, RowLoss, Task
from lupi.errors import LupiError
from lupi.tasks.table import TableRun, TableTask
from lupi.tasks.table_network import TableNetworkSettings
from lupi.train.batch_loss import Part, reduce
from made_table import HEADER, rows, settings_of, write_csv


def task_with(
    tmp_path: Path, column: list[Any] | None = None, target: str = "hours", **changes: Any
) -> Task:
    column = [i % 4 for i in range(120)] if column is None else column
    lines = [[*row, str(weight)] for row, weight in zip(rows(120), column, strict=True)]
    path = write_csv(tmp_path / "weighted.csv", lines, [*HEADER, "n"])
    settings = settings_of(path, target, **{"weights": "n", **changes})
    return TableTask(settings, TableNetworkSettings(n_hidden=8))


def of(task: Task, part: str) -> Batch:
    batch: Batch = next(iter(getattr(task.splits(40, 0), part).batches(1000)))
    return batch


def raw(task: Task, part: Any) -> np.ndarray:
    return run_of(task).parts[part].frame["n"].to_numpy(dtype=float)


def run_of(task: Task) -> TableRun:
    run = task.for_run(40, 0).run
    assert isinstance(run, TableRun)
    return run


def test_weights_count_in_the_loss_and_in_the_metrics(tmp_path: Path) -> None:
    task = task_with(tmp_path)
    train, test = of(task, "train"), of(task, "test")
    assert train.weights is not None
    assert train.weights.mean() == pytest.approx(1)
    given = run_of(task).parts["train"].frame["n"].to_numpy(dtype=float)
    assert np.allclose(train.weights.numpy(), given / given.mean())
    assert test.weights is not None
    assert np.array_equal(test.weights.numpy(), raw(task, "test"))
    assert task.metric.name == "weighted_r2"
    assert "n" not in {c.name for c in run_of(task).encoder.columns}
    facts = {fact.about: fact.text for fact in task.facts}
    assert facts["weights"].startswith("n, 0 to 3 (mean 1.5), in the loss and metrics; 30 rows")


@pytest.mark.parametrize("use", ["loss", "metrics"])
def test_weights_for_one_of_them(tmp_path: Path, use: str) -> None:
    task = task_with(tmp_path, weights_in=[use])
    assert (of(task, "train").weights is None) == (use == "metrics")
    assert (of(task, "test").weights is None) == (use == "loss")
    assert task.metric.name == ("r2" if use == "loss" else "weighted_r2")


def test_scores_come_with_and_without_weights(tmp_path: Path) -> None:
    task = task_with(tmp_path).for_run(40, 0)
    test = of(task, "test")
    assert test.weights is not None
    y, w = test.y, test.weights
    guess = torch.stack([torch.zeros_like(y), torch.zeros_like(y)], 1)
    std = task.outcome.std
    scores = task.outcome.metrics(guess, y, w)
    assert scores["mse"] == pytest.approx(std**2 * (y**2).mean().item(), rel=1e-5)
    assert scores["weighted_mse"] == pytest.approx(
        std**2 * ((w * y**2).sum() / w.sum()).item(), rel=1e-5
    )


def test_balanced_classes_count_the_same(tmp_path: Path) -> None:
    task = task_with(tmp_path, target="late", class_weights="balanced")
    train = of(task, "train")
    assert train.weights is not None
    sums = torch.stack([train.weights[train.y == i].sum() for i in range(2)])
    assert sums.tolist() == pytest.approx([20, 20])
    without = task_with(tmp_path, target="late", class_weights="balanced", weights=None)
    assert of(without, "train").weights is not None


def test_weights_of_classes(tmp_path: Path) -> None:
    task = task_with(tmp_path, target="late", weights=None, class_weights={"late": 3})
    train = of(task, "train")
    assert train.weights is not None
    late = train.weights[train.y == task.outcome.classes.index("late")]
    others = train.weights[train.y != task.outcome.classes.index("late")]
    assert (late / others[0]).tolist() == pytest.approx([3.0] * len(late))
    assert of(task, "test").weights is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weights": "m"}, "weights: no column is called `m`"),
        ({"weights": "hours"}, "weights: 'hours' is the target"),
        ({"features": ["km", "n"]}, "weights: 'n' is also named as a feature"),
        ({"class_weights": "balanced"}, "class_weights: target 'hours' is a number"),
        ({"weights": None, "weights_in": ["loss"]}, "weights_in has no effect without weights"),
        ({"class_weights": {"late": -1}}, "expected a finite number over 0"),
        ({"weights": "van"}, "weights: column 'van' has .*; expected numbers"),
    ],
)
def test_mistakes(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(LupiError, match=message):
        task_with(tmp_path, **changes)


@pytest.mark.parametrize("bad", ["-1", "", "inf"])
def test_bad_weights(tmp_path: Path, bad: str) -> None:
    with pytest.raises(LupiError, match="row 3 of train, one of 1"):
        task_with(tmp_path, [1, 1, bad, *[1] * 117])


def test_weights_that_are_all_zero(tmp_path: Path) -> None:
    with pytest.raises(LupiError, match="column 'n' is 0 in all train rows"):
        task_with(tmp_path, [0] * 120)
    task = task_with(tmp_path, [1, *[0] * 119])
    with pytest.raises(LupiError, match="of a run have weight 0"):
        task.splits(40, 0)


def test_unknown_classes_have_no_weights(tmp_path: Path) -> None:
    with pytest.raises(LupiError, match="class_weights: no class is called `early`"):
        task_with(tmp_path, target="late", class_weights={"early": 2})


def test_the_loss_of_a_row_counts_by_its_weight() -> None:
    has = torch.tensor([True, False, True])
    batch = Batch(
        torch.zeros(3, 1), torch.zeros(3), torch.zeros(3, 1), has, weights=torch.tensor([1, 2, 0.0])
    )
    losses = {
        "all": RowLoss(torch.tensor([3.0, 5.0, 7.0])),
        "xstar": RowLoss(torch.tensor([3.0, 7.0]), 2.0, only_xstar=True),
    }
    parts = reduce(losses, Part(batch)).parts
    assert parts["all"] == pytest.approx(13 / 3)
    assert parts["xstar"] == pytest.approx(3)
    with pytest.raises(LupiError, match="is a mean over rows"):
        reduce({"mean": RowLoss(torch.tensor(1.0))}, Part(batch))
