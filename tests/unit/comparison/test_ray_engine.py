"""A Ray cluster of two machines (two nodes on this one), one of which is killed on the way."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lupi.comparison.engines.local import local_engine
from lupi.comparison.engines.ray import ray_engine
from lupi.comparison.jobs import Event
from lupi.comparison.plan import make_plan
from lupi.comparison.settings import ComparisonSettings
from lupi.errors import LupiError
from lupi.files import read_rows
from small_comparison import RAW, children_of, results, run_plan

pytestmark = pytest.mark.extra
pytest.importorskip("ray", reason="Ray is not installed: pip install 'lupi[ray]'")

N_EPOCHS = 60
NODE = {
    "object_store_memory": 80 * 2**20,  # the least that Ray takes
    "node_ip_address": "127.0.0.2",  # Ray would replace 127.0.0.1 by an address of the network
}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_raylet_start_wait_time_s", "300")  # a busy machine is slow, not broken
    cluster = Cluster()
    cluster.add_node(num_cpus=0, include_dashboard=False, **NODE)
    yield cluster
    cluster.shutdown()


@pytest.mark.slow
def test_a_machine_that_is_lost_changes_no_result(
    tmp_path: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lupi.comparison.engines.ray.POLL_SECONDS", 0.1)
    raw = {**RAW, "train": {**RAW["train"], "epochs": N_EPOCHS, "schedule": "constant"}}
    plan = make_plan(ComparisonSettings.parse(raw, ""))
    here, there = tmp_path / "here", tmp_path / "there"
    assert run_plan(plan, here, local_engine(1))
    nodes = [cluster.add_node(num_cpus=1, **NODE) for _ in range(2)]
    running: set[str] = set()
    interrupted: set[str] = set()
    finished = []

    def follow(event: Event) -> None:
        if event.what == "epoch":
            running.add(event.run_id)
        else:
            running.discard(event.run_id)
        if len(running) == 2 and not interrupted:  # both machines are at work
            interrupted.update(running)
            kill(nodes[1])
        if event.what == "finished":
            finished.append(event.run_id)
            assert event.peak_memory

    run_plan(plan, there, ray_engine(cluster.address), follow)
    assert interrupted, "finished before a machine could be killed"
    assert len(finished) == 3
    assert results(there) == results(here)
    for run_id in finished:
        rows, warnings = read_rows(there / run_id / "metrics.jsonl")
        assert [row["epoch"] for row in rows] == list(range(1, N_EPOCHS + 1))
        assert not warnings


@pytest.mark.slow
def test_seeds_are_added_until_it_is_decided(tmp_path: Path, cluster: Any) -> None:
    plan = make_plan(ComparisonSettings.parse(RAW, ""), max_seeds=9)
    here, there = tmp_path / "here", tmp_path / "there"
    run_plan(plan, here, local_engine(2))
    cluster.add_node(num_cpus=2, **NODE)
    run_plan(plan, there, ray_engine(cluster.address))
    assert len(results(there)) > 3 * 7, "one look was enough"
    assert results(there) == results(here)


def kill(node: Any) -> None:
    """Kill a machine: Ray's process there, and the runs that it started."""
    raylet = node.all_processes["raylet"][0].process.pid
    for pid in (raylet, *children_of(raylet)):
        os.kill(pid, signal.SIGKILL)


def test_an_address_without_a_cluster(tmp_path: Path) -> None:
    plan = make_plan(ComparisonSettings.parse(RAW, ""))
    with pytest.raises(LupiError, match="no Ray cluster"):
        run_plan(plan, tmp_path, ray_engine("nowhere"))
