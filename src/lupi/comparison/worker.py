"""What a process of any engine executes: one run after another, loading a dataset once."""

import contextlib
import ctypes
import gc
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lupi.comparison.jobs import Event, Job, record_failure
from lupi.permission import allow
from lupi.tasks.registry import TaskLoader
from lupi.train.run import run
from lupi.train.settings import RunSettings

_tasks = TaskLoader()


def run_job(job: Job, on_epoch: Callable[[dict[str, Any]], None] = lambda row: None) -> Event:
    """Execute a job and return how it ended. An exception is recorded and ends this run only."""
    allow(*job.allowed)
    try:
        settings = RunSettings.model_validate(job.settings)
        result = run(settings, job.folder, on_epoch=on_epoch, load=_tasks.load)
    except Exception as error:
        record_failure(job, traceback.format_exc())
        text = f"{type(error).__name__}: {error}"
        return Event(job.run_id, "failed", {"error": text}, peak_memory())
    finally:
        _free_memory()
    return Event(job.run_id, "finished", result, peak_memory())


def _free_memory() -> None:
    """Free the memory of a run, so that a worker does not grow from run to run."""
    gc.collect()  # networks and their hooks refer to each other in circles
    if sys.platform == "linux":
        with contextlib.suppress(AttributeError):  # only glibc has it, and needs it
            ctypes.CDLL(None).malloc_trim(0)


def peak_memory() -> int:
    """Return the peak memory of this process in bytes, with pages of memory-mapped files."""
    if sys.platform == "linux":  # where rusage would count the parent's before it became ours
        status = Path("/proc/self/status").read_text(encoding="ascii")
        if found := re.search(r"VmHWM:\s+(\d+) kB", status):
            return int(found[1]) * 1024
        return 0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS
