"""Jobs that an engine is given, and events that it reports."""

import contextlib
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lupi.files import write_text


@dataclass(frozen=True, slots=True)
class Job:
    """A run to execute: resolved settings and the folder of its record."""

    run_id: str
    settings: dict[str, Any]
    folder: Path
    allowed: tuple[str, ...] = ()
    """What the user allows the settings to name: see `lupi.permission`."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a run."""

    run_id: str
    what: Literal["started", "epoch", "finished", "failed"]
    content: dict[str, Any]
    """A row of metrics, a result, or {"error": text}."""
    peak_memory: int = 0
    """Peak memory of the process since it started, in bytes; 0 if not known."""


@dataclass(frozen=True, slots=True)
class Engine:
    """What executes jobs. Results do not depend on the engine."""

    execute: Callable[[list[Job]], Generator[Event]]
    """Executes jobs and yields events; closing the generator stops all jobs."""
    about: str
    """Description for the user, such as "2 at a time"."""


@dataclass(frozen=True, slots=True)
class Resources:
    """Resources that a cluster reserves for one run."""

    cpus: int | None = None
    """Number of cores; None: the number of threads of the run."""
    gpus: float = 0
    memory_gb: float | None = None

    def cpus_for(self, job: Job) -> int:
        """Return the number of cores of a run."""
        n_threads: int = job.settings["train"]["n_threads"]
        return self.cpus or n_threads


DEFAULT_RESOURCES = Resources()


def record_failure(job: Job, text: str) -> None:
    """Write failure.txt to the folder of a run that failed."""
    with contextlib.suppress(OSError):  # the disk may have failed; the event reports it anyway
        write_text(job.folder / "failure.txt", text)
