"""How long a user waits, in seconds beside the goal; on an idle machine, about ten minutes in all.

    python benchmarks/waiting.py                   # every row
    python benchmarks/waiting.py table predict     # some
    python benchmarks/waiting.py --list

Rows that train take tables and texts made here, of the shape of published ones (395 pupils, 400
reviews), so that nothing has to be downloaded. `clone` and `tests` clone this repository and set
it up as a user does. CPU seconds, of all processes of a command, depend less on what else the
machine does.
"""

import argparse
import contextlib
import csv
import ctypes
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).parent.parent
ROWS = 100_000
"""Rows of the large prediction."""


class Waited(NamedTuple):
    """What was measured."""

    what: str
    seconds: float
    cpu: float | None = None
    """Seconds of CPU of all processes."""
    goal: str = ""
    note: str = ""


def timed(arguments: list[str], folder: Path) -> tuple[float, float, str]:
    """Run a command; return its seconds, those of CPU, and what it printed."""
    environment = {key: v for key, v in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        arguments, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - started
    if done.returncode:
        sys.exit(f"{' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")
    _wait_for_orphans()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, cpu, done.stdout


def adopt_orphans() -> None:
    """Become the parent of processes whose parent ends before them (Linux).

    Workers are forked by a process that ends after the command: their CPU time is counted only
    for a parent that waits for them.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def _wait_for_orphans(seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < deadline:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.05)


def lupi(*words: str) -> list[str]:
    """Return a command of this installation."""
    return [sys.executable, "-m", "lupi", *words]


def in_seconds(seconds: float) -> str:
    """Return a time as text."""
    if seconds < 10:
        return f"{seconds:.2f} s"
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds // 60:.0f}:{seconds % 60:02.0f}"


def clone(folder: Path) -> Iterator[Waited]:
    """From a fresh clone to the verdict of `make demo`."""
    started = time.perf_counter()
    fresh = _clone(folder)
    _, cpu, _ = timed(["make", ".venv/.installed"], fresh)
    set_up = time.perf_counter() - started
    yield Waited("fresh clone: set-up for the demo", set_up, cpu, "60 s")
    seconds, more, _ = timed(["make", "demo"], fresh)
    yield Waited("fresh clone to the demo's verdict", set_up + seconds, cpu + more, "2:00")


def demo(folder: Path) -> Iterator[Waited]:
    """`lupi demo`, 72 runs."""
    yield Waited("demo", *timed(lupi("demo", "--quiet"), folder)[:2], "45 s")


def tests(folder: Path) -> Iterator[Waited]:
    """`make test` in a fresh clone, after its set-up."""
    fresh = _clone(folder)
    yield Waited("make setup", *timed(["make", "setup"], fresh)[:2], "60 s")
    seconds, cpu, printed = timed(["make", "test"], fresh)
    counts = next((line for line in reversed(printed.splitlines()) if "passed" in line), "")
    yield Waited("make test", seconds, cpu, "4:00", counts)


def _clone(folder: Path) -> Path:
    fresh = folder / "lupi"
    if not fresh.exists():
        timed(["git", "clone", "--quiet", str(REPOSITORY), str(fresh)], folder)
    return fresh


def table(folder: Path) -> Iterator[Waited]:
    """The default comparison of a table: 10 arms x 3 sizes x 8 seeds."""
    yield Waited("compare a table, 240 runs", *_compare_table(folder), "20 s")


def _compare_table(folder: Path) -> tuple[float, float]:
    write_pupils(folder / "pupils.csv", 395)
    words = ("pupils.csv", "--target", "grade", "--privileged", "first,second")
    return timed(lupi("compare", *words, "--set", "seeds=8", "--quiet"), folder)[:2]


def texts(folder: Path) -> Iterator[Waited]:
    """The default comparison of 400 texts with rationales."""
    write_reviews(folder / "reviews.csv", 400)
    words = ("reviews.csv", "--text", "review", "--target", "label", "--rationale", "spans")
    waited = timed(lupi("compare", *words, "--quiet"), folder)[:2]
    yield Waited("compare 400 texts, 10 seeds", *waited, "25 s")


def predict(folder: Path) -> Iterator[Waited]:
    """`lupi predict` of one row and of many, against the network alone."""
    if not (folder / "runs/pupils/comparison.json").exists():
        _compare_table(folder)
    timed(lupi("export", "runs/pupils", "--out", "shipped"), folder)
    write_pupils(folder / "one.csv", 1)
    write_pupils(folder / "many.csv", ROWS)
    one = min(timed(lupi("predict", "shipped", "one.csv"), folder)[:2] for _ in range(3))
    yield Waited("predict one row", *one, "1 s")
    many = timed(lupi("predict", "shipped", "many.csv"), folder)
    rate = ROWS / (many[1] - one[1])  # of CPU time, as of the network alone
    alone = json.loads(timed([sys.executable, "-c", NETWORK, "shipped"], folder)[2])
    shares = [f"{100 * rate / r:.0f} % of {name}'s {r:,.0f}" for name, r in alone.items()]
    note = f"{rate:,.0f} rows per CPU second, {', '.join(shares)}; goal 80 %"
    yield Waited(f"predict {ROWS:,} rows of a CSV", *many[:2], "", note)


NETWORK = f"""
import json, sys, time
from pathlib import Path
import numpy as np
from lupi.ship.predictor import load_predictor
description, outputs = load_predictor(Path(sys.argv[1]))
x = np.random.default_rng(0).normal(size=(4096, description.encoder().width)).astype("float32")
def rate(network):
    network(x)
    started, n = time.process_time(), {ROWS} // len(x)
    for _ in range(n):
        network(x)
    return n * len(x) / (time.process_time() - started)
found = {{"NumPy": rate(outputs)}}
import torch
from lupi.ship.student import load_student
torch.set_num_threads(1)
student = load_student(Path(sys.argv[1]))
found["torch"] = rate(lambda x: student.outputs(torch.from_numpy(x)))
print(json.dumps(found))
"""


def judge(folder: Path) -> Iterator[Waited]:
    """`lupi.judge` on 10 methods x 6 controls x 4 sizes x 20 seeds, and its imports."""
    seconds, cpu = map(float, timed([sys.executable, "-c", JUDGE], folder)[2].split())
    yield Waited("lupi.judge, 10 arms x 6 controls x 4 sizes x 20 seeds", seconds, cpu, "0.3 s")


JUDGE = """
import random, time
chance = random.Random(0)
methods = {f"m{i}": ["plain", *(f"m{i}/{k}" for k in range(5))] for i in range(10)}
arms = dict.fromkeys([*methods, *(control for some in methods.values() for control in some)])
rows = [
    {"arm": arm, "size": size, "seed": seed, "score": chance.gauss(0.7, 0.02)}
    for arm in arms for size in (50, 100, 200, 400) for seed in range(20)
]
import lupi
started, cpu = time.perf_counter(), time.process_time()
lupi.judge(rows, method=list(methods), controls=methods)
print(time.perf_counter() - started, time.process_time() - cpu)
"""


def columns(folder: Path) -> Iterator[Waited]:
    """All checks before the first run, of a table with 10,000 columns."""
    chance = random.Random(0)
    with (folder / "wide.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["y", "xstar", *(f"c{i}" for i in range(10_000))])
        for _ in range(200):
            values = [chance.gauss(0, 1) for _ in range(10_002)]
            writer.writerow([f"{value:.3f}" for value in values])
    waited = timed([sys.executable, "-c", COLUMNS], folder)[:2]
    yield Waited("checks before training, 10,000 columns", *waited, "3 s")


COLUMNS = """
from lupi.comparison.defaults import table_comparison
from lupi.interface.running import prepare_plan
prepare_plan(table_comparison({"path": "wide.csv", "target": "y", "privileged": ["xstar"]}))
"""


def write_pupils(path: Path, n_rows: int) -> None:
    """Write a table like that of pupils: 17 categories, 13 numbers, two grades as x*, a grade."""
    chance = random.Random(0)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        names = [f"category{i}" for i in range(17)] + [f"number{i}" for i in range(13)]
        writer.writerow([*names, "first", "second", "grade"])
        for _ in range(n_rows):
            ability = chance.gauss(10, 3)
            kinds = [chance.choice("abcde"[: 2 + i % 4]) for i in range(17)]
            numbers = [round(0.1 * ability + chance.gauss(0, 2)) for _ in range(13)]
            grades = [round(ability + chance.gauss(0, 1)) for _ in range(3)]
            writer.writerow([*kinds, *numbers, *grades])


def write_reviews(path: Path, n_rows: int) -> None:
    """Write texts like film reviews: 700 words of 8,000, with two marked sentences that judge."""
    chance = random.Random(0)
    words = [f"w{i}" for i in range(8000)]
    often = [1 / (i + 3) for i in range(8000)]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["review", "label", "spans"])
        for row in range(n_rows):
            label = row % 2
            text = chance.choices(words, often, k=700)
            places = sorted(chance.sample(range(0, 690, 10), 2))
            for place in places:
                verdicts = [f"{'good' if label else 'bad'}{chance.randrange(40)}" for _ in range(2)]
                text[place : place + 2] = verdicts
            starts = [0]
            for word in text:
                starts.append(starts[-1] + len(word) + 1)
            spans = [[starts[place], starts[place + 10] - 1] for place in places]
            writer.writerow([" ".join(text), label, json.dumps(spans)])


MEASURED: dict[str, Callable[[Path], Iterator[Waited]]] = {
    "clone": clone,
    "demo": demo,
    "table": table,
    "texts": texts,
    "predict": predict,
    "judge": judge,
    "columns": columns,
    "tests": tests,
}


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", nargs="*", help=f"some of {', '.join(MEASURED)}; by default all")
    parser.add_argument("--list", action="store_true", help="print the rows and exit")
    given = parser.parse_args()
    if given.list:
        for name, measure in MEASURED.items():
            print(f"{name:10} {measure.__doc__}")
        return
    if unknown := set(given.rows) - set(MEASURED):
        parser.error(f"unknown rows: {', '.join(sorted(unknown))}; known: {', '.join(MEASURED)}")
    adopt_orphans()
    started = time.perf_counter()
    print(f"{'':54} {'seconds':>8} {'of CPU':>8} {'goal':>6}")
    with tempfile.TemporaryDirectory() as folder:
        for name in given.rows or MEASURED:
            for row in MEASURED[name](Path(folder)):
                cpu = "" if row.cpu is None else in_seconds(row.cpu)
                found = f"{in_seconds(row.seconds):>8} {cpu:>8} {row.goal or '-':>6}  {row.note}"
                print(f"{row.what:54} {found}", flush=True)
    load = os.getloadavg()[0]
    print(f"{in_seconds(time.perf_counter() - started)} in all; load {load:.1f}, want below 2")


if __name__ == "__main__":
    main()
