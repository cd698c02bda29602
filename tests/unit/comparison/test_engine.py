import multiprocessing
from pathlib import Path
from typing import Any

import pytest

from lupi.comparison.engines.local import local_engine
from lupi.comparison.jobs import Event, Job
from lupi.comparison.phases import missing_jobs
from lupi.comparison.plan import make_plan
from lupi.comparison.settings import ComparisonSettings
from lupi.errors import LupiError
from lupi.records import read_comparison
from lupi.train.settings import RunSettings
from small_comparison import RAW, run_plan


def job(folder: Path, name: str, **changes: Any) -> Job:
    raw = {"task": RAW["task"], "network": RAW["network"], "train": RAW["train"]}
    settings = RunSettings.parse(
        {**raw, "method": "het-dropout", "size": 20, "seed": 0, **changes}, ""
    )
    return Job(name, settings.resolved(), folder / name)


def test_one_failing_run_does_not_stop_the_others(tmp_path: Path) -> None:
    jobs = [
        job(tmp_path, "good"),
        job(tmp_path, "bad", settings={"sites": ["nowhere"]}),
        job(tmp_path, "also-good", seed=1),
    ]
    last = {event.run_id: event for event in local_engine(1).execute(jobs)}
    assert {name: event.what for name, event in last.items()} == {
        "good": "finished",
        "bad": "failed",
        "also-good": "finished",
    }
    assert "no site of the network matches 'nowhere'" in last["bad"].content["error"]
    assert "Traceback" in (tmp_path / "bad/failure.txt").read_text()


def test_a_worker_that_dies_is_replaced(tmp_path: Path) -> None:
    jobs = [job(tmp_path, "killed", train={"epochs": 50}), job(tmp_path, "next")]
    last = {}
    for event in local_engine(1).execute(jobs):
        last[event.run_id] = event
        if event.run_id == "killed" and event.what == "epoch":
            for child in multiprocessing.active_children():
                if "LokyProcess" not in type(child).__name__:  # joblib's
                    child.kill()
    assert last["killed"].what == "failed"
    assert "ended with exit code -9" in last["killed"].content["error"]
    assert "memory ran out" in last["killed"].content["error"]
    assert last["next"].what == "finished"


def test_only_what_is_missing_is_done(tmp_path: Path) -> None:
    plan = make_plan(ComparisonSettings.parse(RAW, ""))
    events = [event.what for event in run_plan(plan, tmp_path, local_engine(2))]
    assert events.count("finished") == 3
    assert missing_jobs(plan, tmp_path) == []
    assert run_plan(plan, tmp_path, local_engine(2)) == []
    record = read_comparison(tmp_path)
    assert len(record.finished) == 3
    assert not record.warnings

    more = make_plan(ComparisonSettings.parse({**RAW, "seeds": 2}, ""))
    assert len(missing_jobs(more, tmp_path)) == 3


def test_two_comparisons_in_one_folder_are_kept_apart(tmp_path: Path) -> None:
    plan = make_plan(ComparisonSettings.parse(RAW, ""))
    other = make_plan(ComparisonSettings.parse({**RAW, "seeds": 2}, ""))

    def start_the_other(event: Event) -> None:
        recorded = (tmp_path / "comparison.json").read_text()
        with pytest.raises(LupiError, match="another lupi is at work"):
            run_plan(other, tmp_path, local_engine(1))
        assert (tmp_path / "comparison.json").read_text() == recorded
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_plan(plan, tmp_path, local_engine(1), start_the_other)
    assert run_plan(plan, tmp_path, local_engine(1))  # the folder is free again
