"""What two processes of torchrun promise: the gradients of one. Real ones, on CPU with gloo."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from filelock import FileLock
from torchrun_worker import noisy_gradients, rows_seen

from lupi.files import read_json, read_rows, write_json
from lupi.train.processes import Processes
from lupi.train.run import run
from lupi.train.settings import RunSettings
from made_runs import DIGITS, SETTINGS, made_shards, run_from, streamed

FOLDERS = [str(folder) for folder in Path(__file__).parents[:2]]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]


def started(*command: str, cwd: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [*TORCHRUN, *command],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*FOLDERS, *sys.path])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(*command: str, cwd: Path) -> tuple[int, str, str]:
    process = started(*command, cwd=cwd)
    out, err = process.communicate()
    return process.returncode, out, err


def numbers(folder: Path) -> list[dict[str, Any]]:
    """What a resumed run must reach: losses, scores, noise."""
    rows = read_rows(folder / "metrics.jsonl")[0]
    return [{key: row[key] for key in ("epoch", "lr", "train", "val", "sites")} for row in rows]


def same(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == (pytest.approx(b, rel=1e-6) if isinstance(b, float) else b))


def run_until(epoch: int, settings: RunSettings, folder: Path) -> None:
    def killed(row: dict[str, Any]) -> None:
        if row["epoch"] == epoch:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(settings, folder, killed)


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> str:
    return made_shards(tmp_path_factory.mktemp("shards"))


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory, shards: str) -> Path:
    """The runs in two processes; one of them goes on from a single process that was killed."""
    folder = tmp_path_factory.mktemp("together")
    run_until(2, SETTINGS["resumed"], folder / "resumed")
    code, _, err = ended("-m", "torchrun_worker", str(folder), shards, cwd=folder)
    assert code == 0, err
    return folder


def test_both_processes_have_the_gradients_of_one_where_nothing_is_drawn(together: Path) -> None:
    assert json.loads((together / "wrong.json").read_text()) == []


def test_noisy_gradients_have_the_distribution_of_one_process(together: Path) -> None:
    two = torch.load(together / "noisy.pt")
    one = noisy_gradients(Processes("64-true", "cpu"))
    assert not torch.equal(one, two)
    errors = ((one.var(0) + two.var(0)) / len(one)).sqrt()
    used = errors > 0
    assert (one.mean(0) - two.mean(0))[used].div(errors[used]).abs().max() < 5
    assert (one.std(0) / two.std(0))[used].log().abs().max() < 0.5


def test_a_run_of_two_processes_resumes_to_the_same_numbers(together: Path) -> None:
    assert same(numbers(together / "partial"), numbers(together / "partial-resumed"))


@pytest.mark.parametrize("name", [*SETTINGS, "streamed"])
def test_two_processes_write_the_record_of_a_run(name: str, together: Path, shards: str) -> None:
    result = read_json(together / name / "result.json")
    assert result["status"] == "finished"
    assert len(numbers(together / name)) == result["epochs"]
    environment = read_json(together / name / "environment.json")
    assert environment["processes"] == "2"
    settings = {**SETTINGS, "streamed": streamed(shards)}[name]
    assert read_json(together / name / "settings.json") == settings.resolved()


def test_each_row_of_shards_is_seen_once_by_one_of_two(together: Path, shards: str) -> None:
    first, second = json.loads((together / "seen.json").read_text())
    alone = rows_seen(shards, 1, 0)
    for epoch in range(2):
        assert len(set(alone[epoch])) == 11
        assert first[epoch]
        assert second[epoch]
        assert sorted(first[epoch] + second[epoch]) == sorted(alone[epoch])


def test_killed_processes_leave_what_one_process_goes_on_with(tmp_path: Path) -> None:
    long = {**SETTINGS["partial"].resolved(), "train": {**DIGITS["train"], "epochs": 10_000}}
    long["train"]["schedule"] = "constant"
    settings = run_from(long)
    arm = {key: long[key] for key in ("method", "xstar_frac")}
    shared = {key: long[key] for key in ("task", "network", "train")}
    comparison = {"name": "c", "arms": {"a": arm}, "sizes": [long["size"]], "seeds": 1, **shared}
    write_json(tmp_path / "c.yaml", comparison)  # JSON is YAML
    process = started("-m", "lupi", "train", "c.yaml", cwd=tmp_path)
    folder = tmp_path / "runs/c" / settings.run_id
    while process.poll() is None and len(numbers(folder)) < 2:
        time.sleep(0.05)
    process.kill()  # torchrun, which can't end the others any more
    _, err = process.communicate()
    with FileLock(folder / ".lock"):  # until they have ended
        n_epochs = len(numbers(folder))
    assert n_epochs >= 2, err
    run_until(n_epochs + 2, settings, folder)
    assert [row["epoch"] for row in numbers(folder)] == [*range(1, n_epochs + 3)]


def test_a_failure_of_one_process_is_told_once_and_ends_both(tmp_path: Path) -> None:
    comparison = {"name": "c", "task": {"name": "digits"}, "sizes": [20], "seeds": 1}
    write_json(tmp_path / "c.yaml", {**comparison, "arms": {"a": {"method": "no-xstar"}}})
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys\n"
        "from lupi.cli import main\n"
        "sys.argv = ['lupi', 'train', 'c.yaml' if os.environ['RANK'] == '0' else 'd.yaml']\n"
        "main()\n"
    )
    code, out, err = ended(str(script), cwd=tmp_path)
    assert code != 0
    assert out == ""
    assert err.count("error in process 1: ") == 1
    assert "d.yaml" in err
    assert "process 0" not in err


def test_a_mistake_is_told_once(tmp_path: Path) -> None:
    code, _, err = ended("-m", "lupi", "compare", "demo", cwd=tmp_path)
    assert code != 0
    assert err.count("torchrun is only for `lupi train`") == 1
