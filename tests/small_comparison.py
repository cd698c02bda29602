"""A comparison of digits that takes seconds, and what it recorded."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from lupi.comparison.jobs import Engine, Event
from lupi.comparison.plan import Plan
from lupi.interface.running import execute_plan
from lupi.records import PlannedRun

RAW: dict[str, Any] = {
    "name": "small",
    "task": {"name": "digits"},
    "network": {"width": 2},
    "train": {"epochs": 2, "batch_size": 16},
    "arms": {
        "no-xstar": {"method": "no-xstar"},
        "het-dropout": {"method": "het-dropout", "controls": ["shuffled"]},
    },
    "sizes": [20],
    "seeds": 1,
}


SMALL = {**RAW, "sizes": [20, 40], "seeds": 2}
"""Twelve runs instead of three."""


def results(folder: Path) -> dict[str, str]:
    """What each run found, as it stands on disk."""
    return {path.parent.name: path.read_text() for path in folder.glob("*/result.json")}


def children_of(pid: int) -> list[int]:
    """The processes that a process started."""
    text = "".join(path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children"))
    return [int(child) for child in text.split()]


def run_plan(
    plan: Plan,
    folder: Path,
    engine: Engine,
    on_event: Callable[[Event], None] | None = None,
) -> list[Event]:
    """Execute a plan as `lupi compare` does; return the events, after passing each on."""
    events: list[Event] = []

    def hear(run: PlannedRun, event: Event) -> None:
        events.append(event)
        if on_event is not None:
            on_event(event)

    execute_plan(plan, folder, engine, hear)
    return events
