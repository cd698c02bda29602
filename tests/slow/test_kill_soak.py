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
from contextlib import suppress
from pathlib import Path

import pytest

from made_images import image_folder
from the_command import lupi, started
from tiny_comparison import processes_of, recorded, write_settings

PHASES = ("decoding", "training", "results", "report")
N_KILLS = max(int(os.environ.get("LUPI_KILLS", "5")), len(PHASES))
N_RUNS = 6
WAIT = 600
SOON = (0, 0.001, 0.005, 0.02, 0.1, 0.3)
"""Seconds after a sign of the phase, one of which is drawn."""


def seen(folder: Path, phase: str) -> int:
    """Measure what is there of a phase's work: more is a sign that the phase is on."""
    match phase:
        case "decoding":
            return len(list(folder.glob("cache/*.unfinished")))
        case "training":
            return sum(path.stat().st_size for path in folder.glob("killed/*/metrics.jsonl"))
        case "results":
            return n_results(folder)
    plan = folder / "killed/comparison.json"  # written anew at each start
    return plan.stat().st_mtime_ns if n_results(folder) == N_RUNS else 0


def n_results(folder: Path) -> int:
    return len(list(folder.glob("killed/*/result.json")))


def kill_in(phase: str, folder: Path, chance: random.Random) -> str:
    """Start the comparison, kill it a moment after a sign of the phase, and say what was hit.

    That is judged by what is there afterwards: in the report, all results but no whole page.
    """
    (folder / "killed/report.html").unlink(missing_ok=True)
    before = {phase: seen(folder, phase) for phase in PHASES}
    command = ("compare", "tiny.yaml", "--out", "killed")
    process = started(*command, cwd=folder, stdout=subprocess.DEVNULL, start_new_session=True)
    until = time.monotonic() + WAIT
    while process.poll() is None and seen(folder, phase) <= before[phase]:
        assert time.monotonic() < until
        time.sleep(0.002)
    time.sleep(chance.choice(SOON))
    if chance.random() < 0.5:
        process.kill()  # its workers and their server have to notice it themselves
    else:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    while left := processes_of(process.pid):
        assert time.monotonic() < until, f"left behind: {left}"
        time.sleep(0.01)
    if seen(folder, "decoding"):
        return "decoding"
    if n_results(folder) == N_RUNS:
        return "after the end" if (folder / "killed/report.html").exists() else "report"
    for hit in ("results", "training"):
        if seen(folder, hit) > before[hit]:
            return hit
    return "before the first epoch"


@pytest.mark.slow
def test_killed_at_random_moments_it_ends_with_the_same_numbers(tmp_path: Path) -> None:
    image_folder(tmp_path / "pets", n_images=60)
    write_settings(tmp_path)
    done = lupi("compare", "tiny.yaml", "--out", "undisturbed", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    whole = recorded(tmp_path / "undisturbed")
    assert sum(name.endswith("result.json") for name in whole) == N_RUNS
    chance = random.Random(os.environ.get("LUPI_SOAK_SEED", "0"))
    todo = [*PHASES, *chance.choices(PHASES, k=N_KILLS - len(PHASES))]
    chance.shuffle(todo)
    kills: Counter[str] = Counter()
    results: dict[str, bytes] = {}
    while todo:
        phase = todo[-1]
        if phase == "decoding":
            shutil.rmtree(tmp_path / "cache", ignore_errors=True)
        elif len(results) == N_RUNS and phase != "report":
            shutil.rmtree(tmp_path / "killed")  # once more from the beginning
            results = {}
        hit = kill_in(phase, tmp_path, chance)
        kills[hit] += 1
        print(f"kill {sum(kills.values())}: {hit}", flush=True)  # noqa: T201
        if hit in todo:  # else it came too late, and is tried again
            todo.remove(hit)
        assert sum(kills.values()) <= 3 * N_KILLS, kills
        now = recorded(tmp_path / "killed") if (tmp_path / "killed").exists() else {}
        finished = {name: now[name] for name in now if name.endswith("result.json")}
        assert results.items() <= finished.items(), "a recorded result was lost or changed"
        results = finished
    assert kills.keys() >= set(PHASES)
    again = lupi("compare", "tiny.yaml", "--out", "killed", "--json", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert again.stdout == done.stdout
    assert recorded(tmp_path / "killed") == whole
    assert not list(tmp_path.glob("killed/*/.*.tmp")), "a killed attempt left something behind"
    print(f"\nkilled {sum(kills.values())} times: {dict(kills)}")  # noqa: T201
