"""Do a comparison, or what is left of it."""

from collections.abc import Generator
from pathlib import Path

from filelock import FileLock, Timeout

from lupi.compare.engine import Event, Job, execute
from lupi.compare.settings import Plan
from lupi.errors import LupiError
from lupi.records import read_comparison, write_comparison


def missing_jobs(plan: Plan, folder: Path) -> list[Job]:
    """Record the plan in `folder`, and return the runs that have no result there yet."""
    write_comparison(
        folder,
        plan.settings.resolved(),
        plan.arms,
        plan.metric,
        [planned for planned, _ in plan.runs],
    )
    finished = {run.plan.run_id for run in read_comparison(folder).finished}
    jobs = {
        planned.run_id: Job(planned.run_id, run.resolved(), folder / planned.run_id)
        for planned, run in plan.runs
        if planned.run_id not in finished
    }
    return list(jobs.values())


def compare(plan: Plan, folder: Path, n_workers: int) -> Generator[Event]:
    """Do the missing runs and yield what happens."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / ".lock", timeout=0):
            yield from execute(missing_jobs(plan, folder), n_workers)
    except Timeout:
        raise LupiError(
            f"another lupi is at work in {folder}; wait for it to end, or use another --out"
        ) from None
