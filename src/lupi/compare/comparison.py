"""Do a comparison, or what is left of it."""

import contextlib
from collections.abc import Generator, Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from lupi.compare.engine import Event, Job, execute
from lupi.compare.settings import Plan
from lupi.errors import LupiError
from lupi.records import read_comparison, write_comparison


@contextlib.contextmanager
def opened(plan: Plan, folder: Path) -> Iterator[list[Job]]:
    """Keep others out of `folder`, record the plan there, and give the runs without a result."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / ".lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise LupiError(
            f"another lupi is at work in {folder}; wait for it to end, or use another --out"
        ) from None
    try:
        write_comparison(
            folder,
            plan.settings.resolved(),
            plan.arms,
            plan.metric,
            [planned for planned, _ in plan.runs],
            plan.warnings,
        )
        yield missing_jobs(plan, folder)
    finally:
        lock.release()


def missing_jobs(plan: Plan, folder: Path) -> list[Job]:
    """Return the runs of a plan that have no result in `folder` yet."""
    finished = {run.plan.run_id for run in read_comparison(folder).finished}
    jobs = {
        planned.run_id: Job(planned.run_id, run.resolved(), folder / planned.run_id)
        for planned, run in plan.runs
        if planned.run_id not in finished
    }
    return list(jobs.values())


def compare(plan: Plan, folder: Path, n_workers: int) -> Generator[Event]:
    """Do the missing runs and yield what happens."""
    with opened(plan, folder) as jobs:
        yield from execute(jobs, n_workers)
