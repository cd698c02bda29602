"""What the scripts in benchmarks/ measure, never how fast: machines differ."""

from collections.abc import Callable
from typing import Any

import pytest

import images
import translation
import turns
import workers

KEYS = {"what", "name", "over", "ratio", "seconds", "seconds_over"}


class Clock:
    """A clock that only moves when something is timed."""

    def __init__(self) -> None:
        self.now = 0.0
        self.calls: list[str] = []

    def __call__(self) -> float:
        return self.now

    def takes(self, name: str, *seconds: float) -> Callable[[], None]:
        """Return a function that takes these seconds, one after the other, then the last."""
        left = list(seconds)

        def call() -> None:
            self.calls.append(name)
            self.now += left.pop(0) if len(left) > 1 else left[0]

        return call


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("time.process_time", clock)
    monkeypatch.setattr("time.perf_counter", clock)
    return clock


def test_two_functions_alternate_and_the_ratio_is_the_rounds_median(clock: Clock) -> None:
    slow = clock.takes("a", 99, 99, 2, 6, 40)  # the first two warm up
    row = turns.time_in_turns("step", "a", slow, "b", clock.takes("b", 2), rounds=3)
    assert clock.calls == list("abab" + "ab" + "ba" + "ab")
    assert (row["ratio"], row["seconds"], row["seconds_over"]) == (3, 6, 2)  # not 16 / 2


def test_every_method_on_images_is_held_against_the_plain_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(images, "NETWORK", "small-vgg")
    monkeypatch.setattr(images, "N_STORED", 64)
    rows = list(images.measure(["no-xstar", "oracle"], rounds=2, batch_size=2, threads=1))
    assert [(row["what"], row["name"], row["over"]) for row in rows] == [
        ("input", "a batch", "no-xstar"),
        ("training step", "no-xstar", "no-xstar"),
        ("student's inference", "no-xstar", "plain network"),
        ("training step", "oracle", "no-xstar"),
        ("student's inference", "oracle", "plain network"),
    ]
    assert all(row.keys() == KEYS for row in rows)


@pytest.fixture
def few_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translation, "N_UNITS", 8)
    monkeypatch.setattr(translation, "N_LINES", 60)
    monkeypatch.setattr(translation, "N_SEARCHED", 2)


@pytest.mark.usefixtures("few_sentences")
def test_methods_are_timed_on_sentences() -> None:
    rows = list(translation.measure(["imagination"], rounds=2, batch_size=4, threads=1))
    assert [(row["what"], row["unit"]) for row in rows] == [
        ("training step", "tokens"),
        ("beam search", "sentences"),
    ]
    assert all(row.keys() == KEYS | {"unit", "per_second"} for row in rows)


class TimedWorkers:
    """Workers that take a second to start and two seconds for a run each."""

    def __init__(self, clock: Clock, n: int) -> None:
        self.clock, self.n = clock, n

    def __enter__(self) -> "TimedWorkers":
        self.clock.now += 1
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def execute(self, jobs: list[Any]) -> Any:
        self.clock.now += 2 * len(jobs) / self.n
        for i in range(len(jobs)):
            content = {"error": ""}
            yield _Event("finished", content, peak_memory=100 * self.n + i)


class _Event:
    def __init__(self, what: str, content: dict[str, str], peak_memory: int) -> None:
        self.what, self.content, self.peak_memory = what, content, peak_memory


def test_throughput_start_up_and_memory(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "Workers", lambda n: TimedWorkers(clock, n))
    done: list[int] = []
    found = workers.measure_throughput(2, n_runs=4, rounds=2, on_run=lambda: done.append(1))
    assert len(done) == (1 + 2) + 2 * (4 + 4)  # to start with, and measured
    assert found == {
        "ratio": 2,
        "workers": [
            {"n": 1, "runs_per_minute": 30, "start_up_seconds": 1, "peak_memory_bytes": 103},
            {"n": 2, "runs_per_minute": 60, "start_up_seconds": 1, "peak_memory_bytes": 203},
        ],
    }
