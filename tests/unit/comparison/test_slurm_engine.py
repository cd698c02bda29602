"""submitit's own stand-in for Slurm: real jobs, on this machine."""

import os
import signal
from pathlib import Path

import pytest

from lupi.comparison.engines.local import local_engine
from lupi.comparison.engines.slurm import slurm_engine
from lupi.comparison.jobs import Event
from lupi.comparison.plan import make_plan
from lupi.comparison.settings import ComparisonSettings
from lupi.errors import LupiError
from lupi.files import read_rows
from small_comparison import RAW, children_of, results, run_plan

pytestmark = pytest.mark.extra
pytest.importorskip("submitit", reason="submitit is not installed: pip install 'lupi[slurm]'")

N_EPOCHS = 60


def test_results_are_those_of_this_machine(tmp_path: Path) -> None:
    plan = make_plan(ComparisonSettings.parse(RAW, ""))
    here, there = tmp_path / "here", tmp_path / "there"
    assert run_plan(plan, here, local_engine(2))
    events = run_plan(plan, there, slurm_engine(at_once=2, cluster="local"))
    assert [event.what for event in events].count("finished") == 3
    assert {event.what for event in events} >= {"started", "epoch"}
    assert all(event.peak_memory for event in events if event.what == "finished")
    assert results(there) == results(here)


@pytest.mark.slow
def test_seeds_are_added_until_it_is_decided(tmp_path: Path) -> None:
    plan = make_plan(ComparisonSettings.parse(RAW, ""), max_seeds=9)
    here, there = tmp_path / "here", tmp_path / "there"
    run_plan(plan, here, local_engine(2))
    run_plan(plan, there, slurm_engine(at_once=2, cluster="local"))
    assert len(results(there)) > 3 * 7, "one look was enough"
    assert results(there) == results(here)


def test_a_lost_job_is_recorded_and_goes_on_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lupi.comparison.engines.slurm.POLL_SECONDS", 0.1)
    raw = {**RAW, "arms": {"no-xstar": {"method": "no-xstar"}}}
    raw["train"] = {**RAW["train"], "epochs": N_EPOCHS, "schedule": "constant"}
    plan = make_plan(ComparisonSettings.parse(raw, ""))
    engine = slurm_engine(cluster="local")
    is_killed = False

    def kill_at_the_first_epoch(event: Event) -> None:
        nonlocal is_killed
        if event.what == "epoch" and not is_killed:
            is_killed = True
            for pid in processes_of(tmp_path / "slurm"):
                os.kill(pid, signal.SIGKILL)

    events = run_plan(plan, tmp_path, engine, kill_at_the_first_epoch)
    assert events[-1].what == "failed"
    assert "was lost" in events[-1].content["error"]
    folder = tmp_path / events[-1].run_id
    assert "was lost" in (folder / "failure.txt").read_text()
    assert 0 < len(read_rows(folder / "metrics.jsonl")[0]) < N_EPOCHS
    assert [event.what for event in run_plan(plan, tmp_path, engine)][-1] == "finished"
    rows, _ = read_rows(folder / "metrics.jsonl")
    assert [row["epoch"] for row in rows] == list(range(1, N_EPOCHS + 1))


def processes_of(logs: Path) -> list[int]:
    """The job that submitit started, and what that started in turn."""
    (job,) = {int(path.name.partition("_")[0]) for path in logs.glob("*_submitted.pkl")}
    return [job, *children_of(job)]


def test_a_machine_without_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan(ComparisonSettings.parse(RAW, ""))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(LupiError, match="--engine slurm: Could not detect"):
        run_plan(plan, tmp_path, slurm_engine())
