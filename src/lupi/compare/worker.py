"""What a process of any engine does: one run after another, a data set loaded once."""

import contextlib
import ctypes
import gc
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lupi.compare.jobs import Event, Job, record_failure
from lupi.tasks.registry import AnyTask, build_task, with_network
from lupi.train.run import run
from lupi.train.settings import RunSettings


class LastData:
    """Builds tasks, and loads nothing if the task before had the same data."""

    def __init__(self) -> None:
        self._settings: dict[str, Any] | None = None
        self._task: AnyTask | None = None

    def load(self, task: dict[str, Any], network: dict[str, Any]) -> AnyTask:
        """Build a task from its settings."""
        if self._task is None or self._settings != task:
            self._task = None  # two data sets need not fit into memory
            self._task, self._settings = build_task(task, network), task
        return with_network(self._task, network)


_data = LastData()


def do(job: Job, tell: Callable[[dict[str, Any]], None] = lambda row: None) -> Event:
    """Do a job and return how it ended: an exception is recorded and ends this run only."""
    try:
        settings = RunSettings.model_validate(job.settings)
        result = run(settings, job.folder, on_epoch=tell, load=_data.load)
    except Exception as error:
        record_failure(job, traceback.format_exc())
        text = f"{type(error).__name__}: {error}"
        return Event(job.run_id, "failed", {"error": text}, peak_memory())
    finally:
        _give_memory_back()
    return Event(job.run_id, "finished", result, peak_memory())


def _give_memory_back() -> None:
    """Free what a run leaves, so that a worker's memory does not grow from run to run."""
    gc.collect()  # networks and their hooks refer to each other in circles
    if sys.platform == "linux":
        with contextlib.suppress(AttributeError):  # only glibc has it, and needs it
            ctypes.CDLL(None).malloc_trim(0)


def peak_memory() -> int:
    """Return the most bytes this process has had; pages of memory-mapped files count."""
    if sys.platform == "linux":  # where rusage would count the parent's before it became ours
        status = Path("/proc/self/status").read_text(encoding="ascii")
        if found := re.search(r"VmHWM:\s+(\d+) kB", status):
            return int(found[1]) * 1024
        return 0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS
