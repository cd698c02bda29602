"""How many small runs several workers execute in the time of one.

    python benchmarks/workers.py --workers 2

It prints the throughput with several workers compared with one, the time until all workers were at
work, and the memory of a worker.
"""

import argparse
import contextlib
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from lupi.comparison.engines.local import Workers, n_cores
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
"""A short run, so that the overhead of a comparison is as large as it can be."""


def measure_throughput(
    n_workers: int, n_runs: int, rounds: int, on_run: Callable[[], None]
) -> dict[str, Any]:
    """Execute `n_runs` with one and with several workers, `rounds` times; call `on_run` after each.

    Returns the ratio of both throughputs (the median of the rounds' ratios), and for each number of
    workers: runs a minute, seconds until all were at work, and the most memory one of them took.
    """
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        groups = [_TimedWorkers(n, Path(folder), on_run, stack) for n in (1, n_workers)]
        for turn in range(rounds):
            for workers in groups if turn % 2 == 0 else groups[::-1]:
                workers.work(n_runs)
    one, several = groups
    ratios = [a / b for a, b in zip(one.seconds, several.seconds, strict=True)]
    return {"ratio": median(ratios), "workers": [workers.row(n_runs) for workers in groups]}


class _TimedWorkers:
    """Workers whose runs are timed; they end with the stack."""

    def __init__(
        self, n: int, folder: Path, on_run: Callable[[], None], stack: contextlib.ExitStack
    ) -> None:
        self._n, self._folder, self._on_run = n, folder, on_run
        self.seconds: list[float] = []
        self._peak_memory = 0
        started = time.perf_counter()
        self._workers = stack.enter_context(Workers(n))
        self._do(n)  # one each, so that all workers have loaded the data
        self._first = time.perf_counter() - started

    def work(self, n_runs: int) -> None:
        """Execute some runs, and append the time in seconds."""
        started = time.perf_counter()
        self._do(n_runs)
        self.seconds.append(time.perf_counter() - started)

    def _do(self, n_runs: int) -> None:
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            for event in self._workers.execute(_jobs(Path(folder), n_runs)):
                self._peak_memory = max(self._peak_memory, event.peak_memory)
                if event.what == "failed":
                    raise LupiError(f"a run of the benchmark failed: {event.content['error']}")
                if event.what == "finished":
                    self._on_run()

    def row(self, n_runs: int) -> dict[str, Any]:
        """Return the measurements as a row of the result."""
        seconds = median(self.seconds)
        return {
            "n": self._n,
            "runs_per_minute": 60 * n_runs / seconds,
            "start_up_seconds": max(0.0, self._first - seconds * self._n / n_runs),
            "peak_memory_bytes": self._peak_memory,
        }


def _jobs(folder: Path, n_runs: int) -> list[Job]:
    runs = [RunSettings.parse({**RUN, "seed": seed}, "") for seed in range(n_runs)]
    return [Job(run.run_id, run.resolved(), folder / run.run_id) for run in runs]


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, default=max(2, n_cores()), help="workers")
    parser.add_argument("--runs", type=int, default=16, help="runs per measurement")
    parser.add_argument("--rounds", type=int, default=6, help="measurements")
    given = parser.parse_args()
    found = measure_throughput(given.workers, given.runs, given.rounds, lambda: None)
    print(json.dumps({"runs": given.runs, "rounds": given.rounds, **found}, indent=1))


if __name__ == "__main__":
    main()
