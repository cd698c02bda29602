"""What is measured, never how fast: machines differ."""

import pytest

from lupi.comparison.throughput import RUN, measure_throughput


def test_one_worker_and_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RUN, "network", {"width": 2})
    monkeypatch.setitem(RUN, "train", {"epochs": 1})
    monkeypatch.setitem(RUN, "size", 20)
    heard = []
    found = measure_throughput(n_workers=2, n_runs=2, rounds=1, on_run=lambda: heard.append(1))
    assert len(heard) == (1 + 2) + (2 + 2)  # to start with, and measured
    assert found["ratio"] > 0
    assert [row["n"] for row in found["workers"]] == [1, 2]
    for row in found["workers"]:
        assert row["runs_per_minute"] > 0
        assert row["start_up_seconds"] >= 0
        assert row["peak_memory_bytes"] > 50e6  # torch alone takes more
