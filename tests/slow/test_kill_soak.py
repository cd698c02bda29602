"""Killed without warning, again and again: nothing recorded is lost, and the numbers are the same.

LUPI_KILLS=50 .venv/bin/python -m pytest tests/slow/test_kill_soak.py -s
"""

import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from made_pictures import image_folder
from the_command import lupi, started
from tiny_comparison import recorded, write_settings

N_KILLS = int(os.environ.get("LUPI_KILLS", "5"))
WAIT = 600


def seen(folder: Path) -> dict[str, int]:
    """Count what is there of each phase's work."""
    return {
        "decoding": len(list(folder.glob("cache/*.unfinished/*.npy"))),
        "training": sum(len(p.read_bytes()) for p in folder.glob("killed/*/metrics.jsonl")),
        "results": len(list(folder.glob("killed/*/result.json"))),
        "report": len(list(folder.glob("killed/.report.html.*.tmp"))),
    }


def kill_in(phase: str, folder: Path, chance: random.Random) -> str:
    """Start the comparison and kill it some milliseconds after a sign of the phase; say when."""
    before = seen(folder)[phase]
    command = ("compare", "tiny.yaml", "--out", "killed")
    process = started(*command, cwd=folder, stdout=subprocess.DEVNULL, start_new_session=True)
    until = time.monotonic() + WAIT
    while process.poll() is None and seen(folder)[phase] <= before:
        assert time.monotonic() < until
        time.sleep(0.002)
    time.sleep(chance.choice([0, 0.001, 0.005, 0.02, 0.1, 0.3]))
    if process.poll() is not None:
        return "it had ended"
    if chance.random() < 0.5:
        process.send_signal(signal.SIGKILL)  # workers have to notice it themselves
    else:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return phase


@pytest.mark.slow
def test_killed_at_random_moments_it_ends_with_the_same_numbers(tmp_path: Path) -> None:
    image_folder(tmp_path / "pets", n_pictures=8)
    write_settings(tmp_path)
    done = lupi("compare", "tiny.yaml", "--out", "undisturbed", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    whole = recorded(tmp_path / "undisturbed")
    assert sum(name.endswith("result.json") for name in whole) == 6
    chance = random.Random(os.environ.get("LUPI_SOAK_SEED", "0"))
    kills: Counter[str] = Counter()
    results: dict[str, bytes] = {}
    shutil.rmtree(tmp_path / "cache")
    while sum(kills.values()) < N_KILLS:
        phase = chance.choice(["decoding", "training", "training", "results", "report"])
        if phase == "decoding":
            shutil.rmtree(tmp_path / "cache", ignore_errors=True)
        elif len(results) == 6 and phase != "report":
            shutil.rmtree(tmp_path / "killed")  # once more from the beginning
            results = {}
        kills[kill_in(phase, tmp_path, chance)] += 1
        now = recorded(tmp_path / "killed") if (tmp_path / "killed").exists() else {}
        finished = {name: now[name] for name in now if name.endswith("result.json")}
        assert results.items() <= finished.items(), "a recorded result was lost or changed"
        results = finished
    again = lupi("compare", "tiny.yaml", "--out", "killed", "--json", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert again.stdout == done.stdout
    assert recorded(tmp_path / "killed") == whole
    assert not list(tmp_path.glob("killed/*/.*.tmp")), "a killed attempt left something behind"
    print(f"\nkilled {sum(kills.values())} times: {dict(kills)}")  # noqa: T201
