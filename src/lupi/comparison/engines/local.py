"""Run many runs on this machine: worker processes, one run at a time each.

On Linux they are forked from a server process that has imported torch, so that only one of them,
whatever their number, pays for that; a process that replaces a lost one is there at once.

A run that fails, or takes its worker down, is recorded and the others go on. Workers end with the
process that started them, however it ends.
"""

import contextlib
import gc
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess
from multiprocessing.util import Finalize
from pathlib import Path
from types import ModuleType
from typing import Any

from lupi.comparison.jobs import Engine, Event, Job, record_failure
from lupi.files import is_alive


def n_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def local_engine(n_workers: int | None = None) -> Engine:
    """Return the engine of this machine; by default with a worker for each core."""
    n_workers = n_workers or n_cores()
    if isinstance(_context(), ForkServerContext):
        with _removable_socket():
            forkserver.ensure_running()  # it imports torch while the comparison is planned

    def execute(jobs: list[Job]) -> Generator[Event]:
        with Workers(min(n_workers, len(jobs))) as workers:
            yield from workers.execute(jobs)

    return Engine(execute, f"{n_workers} at a time")


@contextlib.contextmanager
def _removable_socket() -> Iterator[None]:
    """Let multiprocessing put its socket where the next lupi removes it, if this one is killed."""
    place, default = Path(tempfile.gettempdir()), tempfile.tempdir
    for left in place.glob("lupi-*"):
        if (pid := left.name.removeprefix("lupi-")).isdecimal() and not is_alive(int(pid)):
            shutil.rmtree(left, ignore_errors=True)
    folder = place / f"lupi-{os.getpid()}"
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700)
        # After multiprocessing, with priority -100, has removed what it put there.
        Finalize(None, shutil.rmtree, (folder,), {"ignore_errors": True}, exitpriority=-200)
        tempfile.tempdir = str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = default


@dataclass(slots=True)
class _Worker:
    process: BaseProcess
    connection: Connection
    job: Job | None = None


class Workers:
    """Some processes, to be used in a `with`: they end when it ends."""

    def __init__(self, n: int) -> None:
        self._workers = [_start() for _ in range(n)]

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *ended_by: object) -> None:
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.process.join()
            worker.connection.close()

    def execute(self, jobs: list[Job]) -> Generator[Event]:
        """Do the jobs in their order and yield what happens."""
        todo, workers = list(reversed(jobs)), self._workers
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


def _context() -> ForkServerContext | SpawnContext:
    if sys.platform != "linux":  # where system libraries may have threads, which a fork loses
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["lupi.comparison.worker"])
    return context


def _start() -> _Worker:
    context = _context()
    here, there = context.Pipe()
    process = context.Process(target=_work, args=(there,), daemon=True)
    with _without_main():
        process.start()
    there.close()
    return _Worker(process, here)


@contextlib.contextmanager
def _without_main() -> Iterator[None]:
    """Keep workers from importing the user's script, which would start the comparison again.

    A worker needs nothing of it, and few scripts have the `if __name__ == "__main__"` that
    multiprocessing asks for.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


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
        record_failure(worker.job, error)
        return Event(worker.job.run_id, "failed", {"error": error})
    return event


def _work(connection: Connection) -> None:
    """Be a worker: do the jobs that come, until nobody is there to send any."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent to handle
    threading.Thread(target=_end_with_parent, daemon=True).start()
    n_modules = 0
    while True:
        if len(sys.modules) > n_modules:  # what was imported is never garbage: don't look at it
            n_modules = len(sys.modules)
            gc.freeze()
        try:
            job: Job = connection.recv()
        except EOFError:
            return

        def tell(row: dict[str, Any], run_id: str = job.run_id) -> None:
            connection.send(Event(run_id, "epoch", row))

        connection.send(_do(job, tell))


def _do(job: Job, tell: Callable[[dict[str, Any]], None]) -> Event:
    try:
        from lupi.comparison.worker import run_job
    except Exception as error:  # such as a library for which there is no memory
        record_failure(job, traceback.format_exc())
        return Event(job.run_id, "failed", {"error": f"{type(error).__name__}: {error}"})
    return run_job(job, tell)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
