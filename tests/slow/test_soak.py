"""Many small runs on two workers: memory, open files and temporary files stay as they are.

LUPI_SOAK_RUNS=2000 .venv/bin/python -m pytest tests/slow/test_soak.py -s
"""

import os
import tempfile
from collections import defaultdict
from pathlib import Path

import pytest

from lupi.comparison.engines.local import local_engine
from lupi.comparison.jobs import Event
from lupi.comparison.plan import make_plan
from lupi.comparison.settings import ComparisonSettings
from made_table import rows, write_csv
from small_comparison import results, run_plan

N_RUNS = int(os.environ.get("LUPI_SOAK_RUNS", "60"))
GROWTH = 30
"""Megabytes that memory may grow by from the first third of the runs to the last."""


def measured(pid: int) -> tuple[float, int]:
    """Return the memory of a process in megabytes, and how many files it has open."""
    resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return resident * os.sysconf("SC_PAGE_SIZE") / 2**20, len(
        list(Path(f"/proc/{pid}/fd").iterdir())
    )


def workers() -> list[int]:
    """Return the processes that the fork server started for this one."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name = (path.parent / "cmdline").read_text()
            parent = int(path.read_text().rpartition(")")[2].split()[1])
            above = int(Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has ended
            continue
        if "forkserver" in name and above == os.getpid():
            found.append(int(path.parent.name))
    return sorted(found)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_nothing_grows_with_the_number_of_runs(tmp_path: Path) -> None:
    write_csv(tmp_path / "deliveries.csv", rows(60))
    columns = {"target": "hours", "privileged": ["rain", "traffic"], "ignore": ["late"]}
    raw = {
        "name": "soak",
        "task": {"name": "table", "path": str(tmp_path / "deliveries.csv"), **columns},
        "train": {"epochs": 2},
        "arms": {name: {"method": name} for name in ("no-xstar", "het-dropout")},
        "sizes": [30],
        "seeds": N_RUNS // 2,
    }
    seen: dict[str, list[tuple[float, int]]] = defaultdict(list)
    temporary: list[int] = []

    def measure(event: Event) -> None:
        if event.what == "finished":
            seen["parent"].append(measured(os.getpid()))
            for number, pid in enumerate(workers()):
                seen[f"worker {number}"].append(measured(pid))
            temporary.append(
                len(list(Path(tempfile.gettempdir(), f"lupi-{os.getpid()}").rglob("*")))
            )

    plan = make_plan(ComparisonSettings.parse(raw, ""))
    run_plan(plan, tmp_path / "out", local_engine(2), measure)
    assert len(results(tmp_path / "out")) == len(plan.runs)
    assert len(seen) == 3
    assert max(temporary) == min(temporary)
    for name, values in seen.items():
        third = len(values) // 3
        first, last = values[third], values[-1]
        print(f"{name}: {first[0]:.0f} to {last[0]:.0f} MB, {first[1]} to {last[1]} files")  # noqa: T201
        assert last[0] < first[0] + GROWTH
        assert last[1] <= first[1]
