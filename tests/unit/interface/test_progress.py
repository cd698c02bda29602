"""What is shown while a comparison runs where no table can be drawn."""

from pathlib import Path

import pytest

from lupi.comparison.jobs import Event
from lupi.interface.console import silenced
from lupi.interface.progress import LiveTable
from lupi.records import Arm, ComparisonRecord, Metric, PlannedRun, RunRecord


def record(n: int) -> ComparisonRecord:
    runs = [RunRecord(PlannedRun(f"r{i}", "plain", 10, i), Path(f"r{i}")) for i in range(n)]
    arms = [Arm("plain", "no-xstar")]
    return ComparisonRecord(Path(), {}, arms, Metric("accuracy"), runs)


def events(n: int, failed: int = -1) -> list[Event]:
    return [
        Event(f"r{i}", "failed", {"error": "no luck"})
        if i == failed
        else Event(f"r{i}", "finished", {"metrics": {"test": {"accuracy": 0.5}}})
        for i in range(n)
    ]


@pytest.mark.parametrize(("n_runs", "n_lines"), [(240, 20), (6, 6), (21, 11)])
def test_a_few_lines_however_many_runs(
    n_runs: int, n_lines: int, capsys: pytest.CaptureFixture[str]
) -> None:
    LiveTable(record(n_runs)).follow(events(n_runs))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == n_lines
    assert lines[-1].startswith(f"[{n_runs}/{n_runs}] plain, n = 10, seed {n_runs - 1}: test acc")


def test_every_failure_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    LiveTable(record(240)).follow(events(240, failed=100))
    assert "failed plain, n = 10, seed 100: no luck" in capsys.readouterr().err


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with silenced():
        LiveTable(record(3)).follow(events(3))
    assert capsys.readouterr().err == ""
