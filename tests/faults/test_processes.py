"""Clocks that jump, workers without memory, two at work in one folder: no wrong number."""

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from made_images import image_folder
from the_command import environment, lupi, started
from tiny_comparison import processes_of, recorded, write_settings

pytestmark = pytest.mark.slow

JUMPING = """
import random, time
_now, _chance = time.time, random.Random(0)
time.time = lambda: _now() + _chance.choice([-1, 1]) * _chance.uniform(0, 3e9)
time.time_ns = lambda: int(time.time() * 1e9)
"""
"""Put before everything else in every process: years forward and back, whenever asked."""

STARVED = """
import resource, sys
if "multiprocessing.forkserver" in " ".join(sys.orig_argv):
    resource.setrlimit(resource.RLIMIT_AS, ({room}, {room}))
"""
"""Gives workers and the process they are forked from less memory than torch needs."""


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    image_folder(tmp_path / "pets", n_images=8)
    write_settings(tmp_path, seeds=1)
    return tmp_path


def with_start(folder: Path, code: str) -> dict[str, str]:
    """Return an environment in which every Python runs `code` first."""
    (folder / "start").mkdir()
    (folder / "start/sitecustomize.py").write_text(code)
    above = os.environ.get("PYTHONPATH", "")
    return environment(PYTHONPATH=f"{folder / 'start'}{os.pathsep}{above}")


def test_the_clock_decides_no_number(pets: Path) -> None:
    calm = lupi("compare", "tiny.yaml", "--out", "calm", "--json", cwd=pets)
    jumpy = with_start(pets, JUMPING)
    done = lupi("compare", "tiny.yaml", "--out", "jumpy", "--json", cwd=pets, env=jumpy)
    assert done.returncode == 0, done.stderr
    assert done.stdout == calm.stdout
    assert recorded(pets / "jumpy") == recorded(pets / "calm")


def test_a_worker_without_memory_is_a_failed_run_and_not_a_verdict(pets: Path) -> None:
    starved = with_start(pets, STARVED.format(room=300 * 2**20))
    done = lupi("compare", "tiny.yaml", "--out", "out", "--workers", "1", cwd=pets, env=starved)
    assert "Traceback" not in done.stderr.partition("failed")[2]
    assert done.stderr.count("failed") >= 3
    again = lupi("compare", "tiny.yaml", "--out", "out", "--json", cwd=pets)
    assert "3 of 3 runs to do" in again.stderr
    assert '"n_finished": 3' in again.stdout


@contextmanager
def at_work(pets: Path) -> Iterator["subprocess.Popen[str]"]:
    """Run a comparison without end in a session of its own, from its first epoch on."""
    endless = "train={epochs: 1000000, schedule: constant}"
    command = ("compare", "tiny.yaml", "--out", "out", "--set", endless)
    process = started(*command, cwd=pets, start_new_session=True)
    try:
        while process.poll() is None and not list(pets.glob("out/*/metrics.jsonl")):
            time.sleep(0.05)
        assert process.poll() is None
        yield process
    finally:
        process.kill()
        process.wait()


def test_the_second_of_two_in_a_folder_says_so_and_the_first_goes_on(pets: Path) -> None:
    with at_work(pets) as first:
        before = (pets / "out/comparison.json").read_bytes()
        second = lupi("compare", "tiny.yaml", "--out", "out", cwd=pets)
        assert second.returncode == 2
        assert "another lupi is at work in out; wait for it to end" in second.stderr
        assert first.poll() is None
        assert (pets / "out/comparison.json").read_bytes() == before


def test_workers_and_their_server_end_with_a_killed_parent(
    pets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        monkeypatch.setenv("TMPDIR", temporary)
        with at_work(pets) as parent:
            assert sum("forkserver" in command for command in processes_of(parent.pid)) >= 2
            parent.kill()
            parent.wait()
            until = time.monotonic() + 60
            while left := processes_of(parent.pid):
                assert time.monotonic() < until, f"left behind: {left}"
                time.sleep(0.05)
        again = lupi("compare", "tiny.yaml", "--out", "other", cwd=pets)
        assert again.returncode == 0
        assert "Traceback" not in again.stderr
        assert not list(Path(temporary).iterdir()), "left behind"
