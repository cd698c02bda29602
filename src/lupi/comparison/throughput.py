"""How many small runs workers do in a time: one of them, and several, in turns."""

import contextlib
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from lupi.comparison.engines.local import Workers
from lupi.comparison.jobs import Job
from lupi.errors import LupiError
from lupi.train.settings import RunSettings

RUN: dict[str, Any] = {
    "task": {"name": "digits"},
    "network": {"width": 8},
    "train": {"epochs": 4, "batch_size": 32},
    "method": "het-dropout",
    "size": 300,
}
"""Short, so that what a comparison does besides training shows as much as it ever will."""


def measure_throughput(
    n_workers: int, n_runs: int, rounds: int, on_run: Callable[[], None]
) -> dict[str, Any]:
    """Do `n_runs` with one worker and with several, `rounds` times; `on_run` hears of each run.

    Returns the ratio of both throughputs (the median of the rounds' ratios), and for each number of
    workers: runs a minute, seconds until all were at work, and the most memory one of them took.
    """
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        crews = [_Crew(n, Path(folder), on_run, stack) for n in (1, n_workers)]
        for turn in range(rounds):
            for crew in crews if turn % 2 == 0 else crews[::-1]:
                crew.work(n_runs)
    one, several = crews
    ratios = [a / b for a, b in zip(one.seconds, several.seconds, strict=True)]
    return {"ratio": median(ratios), "workers": [crew.row(n_runs) for crew in crews]}


class _Crew:
    """Workers with a stop-watch; they end with the stack."""

    def __init__(
        self, n: int, folder: Path, on_run: Callable[[], None], stack: contextlib.ExitStack
    ) -> None:
        self._n, self._folder, self._on_run = n, folder, on_run
        self.seconds: list[float] = []
        self._peak_memory = 0
        started = time.perf_counter()
        self._workers = stack.enter_context(Workers(n))
        self._do(n)  # one each: from now on they have the data
        self._first = time.perf_counter() - started

    def work(self, n_runs: int) -> None:
        """Do some runs, and add the seconds it took."""
        started = time.perf_counter()
        self._do(n_runs)
        self.seconds.append(time.perf_counter() - started)

    def _do(self, n_runs: int) -> None:
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            for event in self._workers.do(_jobs(Path(folder), n_runs)):
                self._peak_memory = max(self._peak_memory, event.peak_memory)
                if event.what == "failed":
                    raise LupiError(f"a run of the benchmark failed: {event.content['error']}")
                if event.what == "finished":
                    self._on_run()

    def row(self, n_runs: int) -> dict[str, Any]:
        """Sum up."""
        seconds = median(self.seconds)
        return {
            "n": self._n,
            "runs_per_minute": 60 * n_runs / seconds,
            "start_up_seconds": max(0.0, self._first - seconds * self._n / n_runs),
            "peak_memory_bytes": self._peak_memory,
        }


def _jobs(folder: Path, n_runs: int) -> list[Job]:
    runs = [RunSettings.parse({**RUN, "seed": seed}, "").resolve() for seed in range(n_runs)]
    return [Job(run.run_id, run.resolved(), folder / run.run_id) for run in runs]
