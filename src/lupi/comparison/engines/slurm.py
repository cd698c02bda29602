"""Run many runs as Slurm jobs, by submitit: one job each, requeued where it is preempted."""

import time
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any, Literal

from lupi.comparison.engines.following import LostError, follow, run_on_node
from lupi.comparison.jobs import DEFAULT_RESOURCES, Engine, Event, Job, Resources
from lupi.errors import LupiError

POLL_SECONDS = 2.0
MINUTES = 60
AT_ONCE = 100
"""Jobs in the queue at a time: schedulers limit them."""

Ticket = Any
"""submitit's job."""


def slurm_engine(
    per_run: Resources = DEFAULT_RESOURCES,
    minutes: int | None = None,
    options: Mapping[str, str] | None = None,
    at_once: int | None = None,
    cluster: Literal["slurm", "local"] = "slurm",
) -> Engine:
    """Return the engine of a Slurm cluster.

    Args:
        per_run: what is asked for each run.
        minutes: Time limit (60). A job that exceeds it is requeued and resumed, at most three
            times.
        options: of sbatch, such as {"partition": "gpu"}.
        at_once: jobs in the queue at a time, at most (100).
        cluster: `local` starts the jobs on this machine, without Slurm.
    """
    try:
        import submitit
    except ImportError:
        raise LupiError("submitit is not installed: pip install 'lupi[slurm]'") from None
    if per_run.gpus % 1:
        raise LupiError(f"--gpus {per_run.gpus:g}: Slurm gives whole GPUs to a job, Ray parts too")

    def execute(jobs: list[Job]) -> Generator[Event]:
        if jobs:
            logs = jobs[0].folder.parent / "slurm"
            try:
                executor = submitit.AutoExecutor(logs, cluster=cluster)
            except RuntimeError as error:
                raise LupiError(f"--engine slurm: {error}") from None
            executor.update_parameters(
                name="lupi",
                timeout_min=minutes or MINUTES,
                slurm_additional_parameters=dict(options or {}),
            )
            yield from follow(_SlurmCluster(submitit, executor, per_run), jobs, at_once or AT_ONCE)

    return Engine(execute, f"{at_once or AT_ONCE} at a time at most as Slurm jobs")


class _SlurmCluster:
    def __init__(self, submitit: Any, executor: Any, per_run: Resources) -> None:
        self._submitit, self._executor, self._per_run = submitit, executor, per_run
        self._here = Path.cwd()

    def submit(self, job: Job) -> Ticket:
        asked = {
            "cpus_per_task": self._per_run.cpus_for(job),
            "gpus_per_node": int(self._per_run.gpus) or None,
            "mem_gb": self._per_run.memory_gb,
        }
        self._executor.update_parameters(**{k: v for k, v in asked.items() if v is not None})
        return self._executor.submit(_Resumable(), job, self._here)

    def wait(self, tickets: list[Ticket]) -> set[Ticket]:
        time.sleep(POLL_SECONDS)
        return {ticket for ticket in tickets if ticket.done()}

    def outcome(self, ticket: Ticket) -> Event:
        try:
            event: Event = ticket.result()
        except self._submitit.core.utils.UncompletedJobError as error:
            raise LostError(f"Slurm job {ticket.job_id} was lost: {error}") from None
        return event

    def cancel(self, tickets: list[Ticket]) -> None:
        for ticket in tickets:
            ticket.cancel(check=False)


class _Resumable:
    """A run as submitit takes it: stopped by Slurm, it is sent again and goes on."""

    def __call__(self, job: Job, here: Path) -> Event:
        return run_on_node(job, here)

    def checkpoint(self, job: Job, here: Path) -> Any:
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self, job, here)
