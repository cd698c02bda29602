"""Monitor runs on a cluster by polling their records.

So the records must be on storage that all machines share. They have to be anyway: if a machine is
lost, its run resumes on another from its checkpoint.
"""

import os
import platform
from collections import deque
from collections.abc import Generator, Hashable, Iterator
from pathlib import Path
from typing import Any, Protocol, TypeVar

from lupi.comparison.jobs import Event, Job, record_failure
from lupi.errors import LupiError
from lupi.files import read_rows

Ticket = TypeVar("Ticket", bound=Hashable)


class LostError(Exception):
    """The machine or process of a run was lost, more often than a run is tried again."""


class Cluster(Protocol[Ticket]):
    """Where runs can be sent to."""

    def submit(self, job: Job) -> Ticket:
        """Send a run, to start when there is room."""
        ...

    def wait(self, tickets: list[Ticket]) -> set[Ticket]:
        """Return those that have ended; soon, even if none has."""
        ...

    def outcome(self, ticket: Ticket) -> Event:
        """Return how a run ended, or raise `LostError`."""
        ...

    def cancel(self, tickets: list[Ticket]) -> None:
        """End runs, or keep them from starting."""
        ...


def follow(
    cluster: Cluster[Ticket], jobs: list[Job], at_once: int | None = None
) -> Generator[Event]:
    """Let a cluster do the jobs, so many at once at most, and yield what happens."""
    todo = deque(jobs)
    sent: dict[Ticket, _Trace] = {}
    try:
        while todo or sent:
            while todo and (at_once is None or len(sent) < at_once):
                trace = _Trace(todo.popleft())  # as it is before the run starts
                sent[cluster.submit(trace.job)] = trace
            ended = cluster.wait(list(sent))
            for ticket, trace in list(sent.items()):
                yield from trace.news()
                if ticket in ended:
                    event = _outcome(cluster, ticket, trace.job)
                    del sent[ticket]
                    yield event
    finally:
        cluster.cancel(list(sent))


def _outcome(cluster: Cluster[Ticket], ticket: Ticket, job: Job) -> Event:
    try:
        return cluster.outcome(ticket)
    except LostError as error:
        record_failure(job, str(error))
        return Event(job.run_id, "failed", {"error": str(error)})


class _Trace:
    """What is new in the record of a run."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._before, self._started = self._stamp(), False
        self._last = self._row()

    def _stamp(self) -> int:
        """Change with every start of the run."""
        try:
            return (self.job.folder / "environment.json").stat().st_mtime_ns
        except FileNotFoundError:
            return 0

    def _row(self) -> dict[str, Any] | None:
        rows, _ = read_rows(self.job.folder / "metrics.jsonl")
        return rows[-1] if rows else None

    def news(self) -> Iterator[Event]:
        """Yield what happened since the last time."""
        if not self._started:
            if self._stamp() == self._before:
                return
            self._started = True
            yield Event(self.job.run_id, "started", {})
        row = self._row()
        if row is not None and row != self._last:
            self._last = row
            yield Event(self.job.run_id, "epoch", row)


def run_on_node(job: Job, here: Path) -> Event:
    """Execute a job on a cluster node, with `here` as working directory."""
    try:
        os.chdir(here)
        seen = (job.folder.parent / "comparison.json").exists()
    except OSError:
        seen = False
    if not seen:
        raise LupiError(
            f"{platform.node()} does not see {here / job.folder.parent}: start lupi, and keep "
            "records and data, in a folder that all machines share under the same path"
        )
    from lupi.comparison.worker import run_job

    return run_job(job)
