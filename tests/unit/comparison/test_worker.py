import gc
from pathlib import Path
from typing import Any

import pytest

from lupi.comparison.jobs import Job
from lupi.comparison.worker import run_job
from lupi.core import Method
from lupi.errors import LupiError
from lupi.tasks.registry import TaskLoader, parse_network, parse_task
from made_runs import run_from
from made_table import rows, write_csv


def test_data_are_loaded_once(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "deliveries.csv", rows())
    task: dict[str, Any] = {
        "name": "table",
        "path": str(path),
        "target": "hours",
        "privileged": ["rain"],
    }
    settings = parse_task(task)
    data = TaskLoader()
    first = data.load(settings, parse_network(settings, {"n_hidden": 4}))
    path.unlink()
    second = data.load(settings, parse_network(settings, {"n_hidden": 8}))
    nets = [task.for_run(20, 0).network() for task in (first, second)]
    sizes = [sum(w.numel() for w in net.parameters()) for net in nets]
    assert sizes[0] < sizes[1]
    with pytest.raises(LupiError, match="does not exist"):
        data.load(parse_task({**task, "target": "late"}), parse_network(settings, {}))


def test_nothing_of_a_run_stays_in_memory(tmp_path: Path) -> None:
    raw = {
        "task": {"name": "digits"},
        "network": {"width": 2},
        "train": {"epochs": 1, "batch_size": 16},
        "method": "het-dropout",
        "size": 20,
        "seed": 0,
    }
    settings = run_from(raw)
    event = run_job(Job("run", settings.resolved(), tmp_path / "run"))
    assert event.what == "finished"
    assert event.peak_memory > 50e6  # torch alone takes more
    assert not [thing for thing in gc.get_objects() if issubclass(type(thing), Method)]
