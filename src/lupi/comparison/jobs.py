"""Runs as work: what an engine is given and what it tells."""

import contextlib
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lupi.files import write_text


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
    peak_memory: int = 0
    """Bytes that the process has had at most since it started; 0: not known."""


@dataclass(frozen=True, slots=True)
class Engine:
    """What does jobs; results do not depend on which it is."""

    execute: Callable[[list[Job]], Generator[Event]]
    """Does the jobs and yields what happens; closing it ends all of them."""
    about: str
    """How it does them, for the person at the terminal: "2 at a time"."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What a cluster reserves for one run."""

    cpus: int | None = None
    """None: as many as the run has threads."""
    gpus: float = 0
    memory_gb: float | None = None

    def cpus_for(self, job: Job) -> int:
        """Return the cores of a run."""
        n_threads: int = job.settings["train"]["n_threads"]
        return self.cpus or n_threads


DEFAULT_RESOURCES = Resources()


def record_failure(job: Job, text: str) -> None:
    """Leave a word in the folder of a run that failed."""
    with contextlib.suppress(OSError):  # the disk may be what failed; the event says it, too
        write_text(job.folder / "failure.txt", text)
