import json
from pathlib import Path

import pytest

from lupi.records import Arm, ComparisonRecord, Metric, PlannedRun, RunRecord
from lupi.report import training as runs
from lupi.report.training import Row, run_logs


def row(epoch: int, attempt: int = 0) -> Row:
    return {
        "epoch": epoch,
        "attempt": attempt,
        "lr": 0.001,
        "train": {"loss": 2.345678 / epoch, "task": None},
        "sites": {"head.drop1": {"logvar_mean": 0.0}},
    }


def record(**changes: object) -> ComparisonRecord:
    plan = PlannedRun("abc", "het-dropout", 75, 0)
    result = {"status": "finished", "epochs": 3, "best_epoch": 2, "collapsed": True}
    result["metrics"] = {"val": {"accuracy": 0.5}, "test": {"accuracy": 0.48}}
    run = RunRecord(plan, Path("abc"), result | changes)
    return ComparisonRecord(Path(), {}, [Arm("het-dropout", "x")], Metric("accuracy"), [run])


def test_a_run_shows_its_end_and_its_curves() -> None:
    (log,) = run_logs(record(), [[row(1), row(2), row(3)]])
    assert log["end"] == (
        "finished after 3 epochs, best on validation data after 2; accuracy, %: "
        "validation 50.0, test 48.0; collapsed: its noise no longer depends on x*"
    )
    assert log["loss"] == {"loss": [2.346, 1.173, 0.7819], "task": [None] * 3}
    assert (log["lr"], log["variance"]) == ([0.001] * 3, {"head.drop1": [1.0] * 3})


def test_only_the_last_attempt_is_drawn() -> None:
    (log,) = run_logs(record(restarts=1), [[row(1), row(2), row(1, attempt=1)]])
    assert log["epochs"] == [1]
    assert "restarted 1 time(s)" in log["end"]


def test_runs_without_rows_or_result() -> None:
    plan = PlannedRun("abc", "a", 75, 0)
    both = [RunRecord(plan, Path()), RunRecord(plan, Path(), failure="Traceback\nBoom: 1\n")]
    empty = ComparisonRecord(Path(), {}, [], Metric("accuracy"), both)
    logs = run_logs(empty, [[], []])
    assert [log["end"] for log in logs] == ["no result yet", "failed: Boom: 1"]


def test_many_epochs_are_thinned_and_the_last_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row(epoch) for epoch in range(1, 101)]
    monkeypatch.setattr(runs, "MOST_NUMBERS", 100)
    (log,) = run_logs(record(), [rows])
    assert log["epochs"][-1] == 100
    assert len(log["epochs"]) * 5 <= 100
    assert len(json.dumps(log)) < 2000
