"""Do runs in this process, one after another: for tasks that only this process knows."""

from collections.abc import Generator
from dataclasses import replace

from lupi.comparison.jobs import Engine, Event, Job


def in_process_engine() -> Engine:
    """Return the engine of this process."""
    return Engine(_execute, "one after another in this process")


def _execute(jobs: list[Job]) -> Generator[Event]:
    import torch

    from lupi.comparison.worker import run_job

    n_threads = torch.get_num_threads()
    try:
        for job in jobs:
            yield Event(job.run_id, "started", {})
            yield replace(run_job(job), peak_memory=0)  # which is the caller's
    finally:
        torch.set_num_threads(n_threads)
