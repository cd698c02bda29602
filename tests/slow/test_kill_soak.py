"""Killed without warning, again and again: nothing recorded is lost, and the numbers are the same.

LUPI_KILLS=500 .venv/bin/python -m pytest tests/slow/test_kill_soak.py -s
"""

import importlib.util
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from lupi.loaders.text.made_reviews import write_reviews
from made_images import image_folder
from made_reviews import COLUMNS
from made_table import rows, write_csv
from made_text import write_texts
from the_command import environment
from tiny_comparison import TINY, processes_of

pytestmark = pytest.mark.slow

N_KILLS = int(os.environ.get("LUPI_KILLS", "24"))
SHARES = {"local": 0.88, "slurm": 0.08, "ray": 0.04}
"""Of the kills. Ray and the jobs of Slurm import torch anew at every start."""
MOMENTS = ("start", "training", "recording", "ending")
"""Before the first epoch; between epochs; at a new result; when verdict and page are made."""
SOON = (0, 0.001, 0.005, 0.02, 0.1, 0.3)
"""Seconds after a sign of the moment, one of which is drawn."""
WAIT = 600
N_RUNS = 4
PACKAGES = {"local": "lupi", "slurm": "submitit", "ray": "ray"}

PREPARED = """
import atexit, functools, gc, importlib, multiprocessing, os, signal, sys
from contextlib import suppress
from pathlib import Path
import lupi.comparison.worker
from lupi.cli import main
from lupi.comparison.engines import local, slurm
local._context = lambda: multiprocessing.get_context("fork")
slurm.slurm_engine = functools.partial(slurm.slurm_engine, cluster="local")  # without Slurm
slurm.POLL_SECONDS = 0.2
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for line in sys.stdin:
    folder, *arguments = line.split()
    with suppress(FileNotFoundError):
        for name in Path(folder, "modules.txt").read_text().split():
            with suppress(ImportError):
                importlib.import_module(name)
    gc.freeze()
    if pid := os.fork():
        print(pid, flush=True)
        continue
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    os.chdir(folder)
    sys.argv = arguments
    for number, name in enumerate((os.devnull, "stdout.txt", "stderr.txt")):
        mode = os.O_WRONLY | os.O_CREAT | os.O_TRUNC if number else os.O_RDONLY
        os.dup2(os.open(name, mode), number)
    atexit.register(lambda: Path("modules.txt").write_text(" ".join(sys.modules)))
    main()
"""
"""A process that has imported what commands need, and forks for every command it reads.

While modules are imported there is nothing to lose, and it takes ten times as long as the rest. A
command that ends leaves the names of its modules, for the next ones in that folder. The fork
server, which it replaces, is killed in tests/faults/test_processes.py.
"""

Undisturbed = Callable[[str], tuple[Path, str, dict[str, bytes]]]
"""From the name of a task to its data, and what its comparison printed and recorded."""

TASKS: dict[str, tuple[Callable[[Path], object], dict[str, Any]]] = {
    "images": (lambda folder: image_folder(folder / "pets", n_images=30), TINY),
    "table": (
        lambda folder: write_csv(folder / "deliveries.csv", rows(60)),
        {
            "task": {
                "name": "table",
                "path": "deliveries.csv",
                "target": "hours",
                "privileged": ["rain", "traffic"],
                "ignore": ["late"],
            },
            "sizes": [30],
            "train": {"epochs": 20},
        },
    ),
    "text": (
        lambda folder: write_reviews(folder / "reviews.csv", 60),
        {
            "task": {"name": "text", "path": "reviews.csv", **COLUMNS},
            "sizes": [30],
            "train": {"epochs": 5},
        },
    ),
    "translation": (
        lambda folder: write_texts(folder / "texts"),
        {
            "task": {
                "name": "translation",
                "root": "texts",
                "source": "en",
                "target": "de",
                "xstar": "texts/vectors.npz",
                "beam": 2,
            },
            "network": {"n_units": 8},
            "sizes": [30],
            "train": {"epochs": 3},
        },
    ),
}


class Starter:
    """The process that starts commands, each in a session of its own."""

    def __init__(self) -> None:
        self._temporary = tempfile.TemporaryDirectory()  # a short name, or Ray has no sockets
        self._process = subprocess.Popen(
            [sys.executable, "-c", PREPARED],
            env=environment(RAY_TMPDIR=self._temporary.name),
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def start(self, folder: Path, *arguments: str) -> int:
        """Start `lupi` with these arguments, and return its process id."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(" ".join([str(folder), "lupi", *arguments]) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def end(self) -> None:
        self._process.communicate()
        self._temporary.cleanup()


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


class Comparison:
    """A small comparison on one engine, in a folder of its own."""

    def __init__(self, folder: Path, starter: Starter, engine: str = "local") -> None:
        self.folder, self.out, self.engine, self.starter = folder, folder / "out", engine, starter

    def start(self) -> int:
        options = ("--out", "out", "--json", "--workers", "2", "--engine", self.engine)
        return self.starter.start(self.folder, "compare", "small.yaml", *options)

    def finish(self) -> str:
        """Execute what is left, and return what is printed."""
        until, pid = time.monotonic() + WAIT, self.start()
        while is_alive(pid):
            assert time.monotonic() < until
            time.sleep(0.05)
        printed = (self.folder / "stdout.txt").read_text()
        assert printed, (self.folder / "stderr.txt").read_text()
        return printed

    def results(self) -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in self.out.glob("*/result.json")}

    def recorded(self) -> dict[str, bytes]:
        """Return all files but those with times, and the logs of submitit."""
        without = {"environment.json", "metrics.jsonl", "report.html"}
        return {
            name: path.read_bytes()
            for path in sorted(self.out.rglob("*"))
            if path.is_file()
            and path.name not in without
            and not (name := str(path.relative_to(self.out))).startswith("slurm")
        }

    def progress(self, moment: str) -> int:
        """Measure what is there of a moment's work: more is a sign that the moment has come."""
        match moment:
            case "training":
                return sum(path.stat().st_size for path in self.out.glob("*/metrics.jsonl"))
            case "recording":
                return len(self.results())
        plan = self.out / "comparison.json"  # written anew at each start
        return plan.stat().st_mtime_ns if len(self.results()) == N_RUNS else 0

    def kill(self, moment: str, chance: random.Random, start_takes: float) -> tuple[str, float]:
        """Start it, kill it at a moment; return the moment that was hit, and seconds to its sign.

        That is judged by what is there afterwards: at the ending, all results but no whole page.
        """
        (self.out / "report.html").unlink(missing_ok=True)
        before = {moment: self.progress(moment) for moment in MOMENTS[1:]}
        began = time.monotonic()
        pid = self.start()
        if moment == "start":
            time.sleep(chance.uniform(0, start_takes))
        else:
            while is_alive(pid) and self.progress(moment) <= before[moment]:
                time.sleep(0.005)
                assert time.monotonic() < began + WAIT
        took = time.monotonic() - began
        time.sleep(chance.choice(SOON))
        is_late = not is_alive(pid)
        with suppress(ProcessLookupError):
            if chance.random() < 0.5:
                os.kill(pid, signal.SIGKILL)  # its workers have to notice it themselves
            else:
                os.killpg(pid, signal.SIGKILL)
        while left := processes_of(pid):
            assert time.monotonic() < began + WAIT, f"left behind: {left}"
            time.sleep(0.02)
        if is_late:
            return "too late", took
        if len(self.results()) == N_RUNS:
            return "ending", took
        for hit in ("recording", "training"):
            if self.progress(hit) > before[hit]:
                return hit, took
        return "start", took


@pytest.fixture(scope="module")
def starter() -> Iterator[Starter]:
    starter = Starter()
    yield starter
    starter.end()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, starter: Starter) -> Undisturbed:
    """Return what a task's comparison comes to on this machine, if nobody kills it."""

    @cache
    def execute(task: str) -> tuple[Path, str, dict[str, bytes]]:
        data, folder = (tmp_path_factory.mktemp(task) for _ in range(2))
        make, settings = TASKS[task]
        make(data)
        arms = {name: {"method": name} for name in ("no-xstar", "het-dropout")}
        raw = {**settings, "name": "small", "arms": arms, "seeds": N_RUNS // len(arms)}
        (data / "small.yaml").write_text(yaml.safe_dump(raw))
        comparison = Comparison(Path(shutil.copytree(data, folder, dirs_exist_ok=True)), starter)
        printed = comparison.finish()
        shutil.copy(comparison.folder / "modules.txt", data)
        return data, printed, comparison.recorded()

    return execute


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("engine", SHARES)
def test_killed_at_random_moments_it_ends_with_the_same_numbers(
    undisturbed: Undisturbed, starter: Starter, tmp_path: Path, engine: str, task: str
) -> None:
    if importlib.util.find_spec(PACKAGES[engine]) is None:
        pytest.skip(f"{PACKAGES[engine]} is not installed: pip install 'lupi[{engine}]'")
    data, printed, whole = undisturbed(task)
    shutil.copytree(data, tmp_path, dirs_exist_ok=True)
    assert sum(name.endswith("result.json") for name in whole) == N_RUNS
    chance = random.Random(os.environ.get("LUPI_SOAK_SEED", "0"))
    n_kills = max(1, round(N_KILLS * SHARES[engine] / len(TASKS)))
    todo = [*chance.sample(MOMENTS, len(MOMENTS)), *chance.choices(MOMENTS, k=n_kills)][:n_kills]
    comparison, start_takes = Comparison(tmp_path, starter, engine), 2.0
    kills: Counter[str] = Counter()
    n_recorded, results = 0, comparison.results()
    while todo:
        if len(results) == N_RUNS and "ending" not in todo:
            assert comparison.recorded() == whole
            shutil.rmtree(comparison.out)  # once more from the beginning
            results = {}
        moment = todo[0]
        if len(results) == N_RUNS:
            moment = "ending"
        elif moment == "ending":
            moment = "recording"
        if moment == "start":
            shutil.rmtree(tmp_path / "cache", ignore_errors=True)  # decoded anew
        hit, took = comparison.kill(moment, chance, start_takes)
        if moment == "training":
            start_takes = took
        kills[hit] += 1
        assert kills["too late"] <= 10 + n_kills, kills
        if hit in todo:
            todo.remove(hit)
        elif hit != "too late":
            todo.pop()
        now = comparison.results()
        assert results.items() <= now.items(), "a recorded result was lost or changed"
        n_recorded += len(now) - len(results)
        results = now
    assert comparison.finish() == printed
    assert comparison.recorded() == whole
    late = kills.pop("too late", 0)
    assert n_recorded >= kills["recording"], "kills keep it from getting on"
    print(  # noqa: T201
        f"\n{task} on {engine}: {kills.total()} kills, {dict(kills)}, {n_recorded} runs finished "
        f"between them, {late} came too late",
        flush=True,
    )
