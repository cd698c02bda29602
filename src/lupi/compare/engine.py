"""Run many runs on this machine: worker processes that import torch once, one run at a time each.

A run that fails, or takes its worker down, is recorded and the others go on. Workers end with the
process that started them, however it ends.
"""

import contextlib
import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Literal

from lupi.records import write_text


@dataclass(frozen=True, slots=True)
class Job:
    """A run to do: resolved settings and the folder of its record."""

    run_id: str
    settings: dict[str, Any]
    folder: Path


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a run."""

    run_id: str
    what: Literal["started", "epoch", "finished", "failed"]
    content: dict[str, Any]
    """A row of metrics, a result, or {"error": text}."""


@dataclass(slots=True)
class _Worker:
    process: BaseProcess
    connection: Connection
    job: Job | None = None


def execute(jobs: list[Job], n_workers: int) -> Generator[Event]:
    """Do the jobs in their order and yield what happens; closing the iterator ends the workers."""
    todo = list(reversed(jobs))
    workers = [_start() for _ in range(min(n_workers, len(jobs)))]
    try:
        for worker in workers:
            yield from _give(worker, todo)
        while busy := [worker for worker in workers if worker.job is not None]:
            ready = wait([worker.connection for worker in busy])
            for i, worker in enumerate(workers):
                if worker.connection not in ready or worker.job is None:
                    continue
                event = _hear(worker)
                yield event
                if event.what in ("finished", "failed"):
                    worker.job = None
                    if not worker.process.is_alive():
                        workers[i] = worker = _start()
                    yield from _give(worker, todo)
    finally:
        for worker in workers:
            worker.process.kill()
        for worker in workers:
            worker.process.join()
            worker.connection.close()


def _start() -> _Worker:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_work, args=(there,), daemon=True)
    process.start()
    there.close()
    return _Worker(process, here)


def _give(worker: _Worker, todo: list[Job]) -> Iterator[Event]:
    if todo:
        worker.job = todo.pop()
        with contextlib.suppress(BrokenPipeError):  # it died: _hear will say so
            worker.connection.send(worker.job)
        yield Event(worker.job.run_id, "started", {})


def _hear(worker: _Worker) -> Event:
    assert worker.job is not None
    try:
        event: Event = worker.connection.recv()
    except (EOFError, ConnectionResetError):
        worker.process.join()
        error = f"the worker process ended with exit code {worker.process.exitcode}"
        if worker.process.exitcode == -signal.SIGKILL:
            error += (
                ": someone killed it, most likely the system because memory ran out; use fewer "
                "--workers or a smaller batch_size, and give the same command again"
            )
        _record_failure(worker.job, error)
        return Event(worker.job.run_id, "failed", {"error": error})
    return event


def _record_failure(job: Job, text: str) -> None:
    with contextlib.suppress(OSError):  # the disk may be what failed; the event says it, too
        write_text(job.folder / "failure.txt", text)


def _work(connection: Connection) -> None:
    """Be a worker: do the jobs that come, until nobody is there to send any."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent to handle
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            job: Job = connection.recv()
        except EOFError:
            return
        connection.send(_do(job, connection))


def _do(job: Job, connection: Connection) -> Event:
    def tell(row: dict[str, Any]) -> None:
        connection.send(Event(job.run_id, "epoch", row))

    try:
        from lupi.train.run import RunSettings, run

        result = run(RunSettings.model_validate(job.settings), job.folder, on_epoch=tell)
    except Exception as error:
        _record_failure(job, traceback.format_exc())
        return Event(job.run_id, "failed", {"error": f"{type(error).__name__}: {error}"})
    return Event(job.run_id, "finished", result)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
