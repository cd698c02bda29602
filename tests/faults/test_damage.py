"""Records that were cut, changed or lost: noticed, kept, and repeated with the same numbers."""

import json
import os
import platform
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from conftest import Here
from lupi.errors import LupiError
from lupi.files import read_rows, read_set_aside, remove_leftovers, write_json
from lupi.train.run import run
from lupi.train.settings import RunSettings
from made_runs import run_from
from small_comparison import RAW
from tiny_comparison import recorded


def small_run(folder: Path, epochs: int = 3, **train_changes: object) -> RunSettings:
    raw = {"task": {"name": "digits"}, "network": {"width": 2}, "method": "het-dropout"}
    train = {"epochs": epochs, "batch_size": 16, **train_changes}
    return run_from({**raw, "train": train, "size": 20, "seed": 0})


@pytest.fixture(autouse=True)
def _keep_every_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lupi.train.checkpoint.SECONDS_BETWEEN", 0)


class StopHereError(Exception):
    pass


def stopped(settings: RunSettings, folder: Path, after: int) -> Path:
    """Do a run until an epoch has been recorded; return its checkpoint."""

    def stop(row: dict[str, object]) -> None:
        if row["epoch"] == after:
            raise StopHereError

    with pytest.raises(StopHereError):
        run(settings, folder, stop)
    return folder / "checkpoint/last.safetensors"


def test_files_that_may_not_grow_leave_the_run_where_it_was(tmp_path: Path) -> None:
    settings = small_run(tmp_path)
    whole = run(settings, tmp_path / "whole")
    stopped(settings, tmp_path / "run", after=1)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, limits[1]))
    try:
        with pytest.raises(OSError, match=r"File too large|can't be written"):
            run(settings, tmp_path / "run")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert run(settings, tmp_path / "run") == whole


def test_a_run_that_is_stopped_again_and_again_gets_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each time in its second epoch, long before a checkpoint is due."""
    monkeypatch.setattr("lupi.train.checkpoint.SECONDS_BETWEEN", 5)
    settings = small_run(tmp_path, epochs=5)
    whole = run(settings, tmp_path / "whole")
    starts: list[list[object]] = []

    def stop(row: dict[str, object]) -> None:
        starts[-1].append(row["epoch"])
        if len(starts[-1]) == 2:
            raise StopHereError

    for _ in range(5):
        starts.append([])
        with pytest.raises(StopHereError):
            run(settings, tmp_path / "run", stop)
    assert starts == [[1, 2], [1, 2], [2, 3], [3, 4], [4, 5]]
    assert run(settings, tmp_path / "run") == whole


@pytest.mark.parametrize("place", [0.02, 0.3, 0.6, 0.9, 0.999])
def test_a_checkpoint_with_one_wrong_bit_is_set_aside(tmp_path: Path, place: float) -> None:
    settings = small_run(tmp_path, epochs=2)
    whole = run(settings, tmp_path / "whole")
    checkpoint = stopped(settings, tmp_path / "run", after=1)
    content = bytearray(checkpoint.read_bytes())
    content[int(place * len(content))] ^= 4
    checkpoint.write_bytes(content)
    assert run(settings, tmp_path / "run") == whole
    ((kept, reason),) = read_set_aside(tmp_path).items()
    assert "last.safetensors can't be read as a checkpoint" in reason
    assert (kept / "checkpoint/last.safetensors").read_bytes() == content


def test_a_student_with_one_wrong_bit_is_set_aside(tmp_path: Path) -> None:
    """No epoch is better than the first, so that its student is the one to be read."""
    settings = small_run(tmp_path, epochs=2, lr=1e-12, reestimate_batchnorm=False)
    whole = run(settings, tmp_path / "whole")
    stopped(settings, tmp_path / "run", after=1)
    student = tmp_path / "run/checkpoint/student.safetensors"
    content = bytearray(student.read_bytes())
    content[-1] ^= 4
    student.write_bytes(content)
    assert run(settings, tmp_path / "run") == whole
    assert "it is damaged: its SHA-256 is not the one" in str(read_set_aside(tmp_path))


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_lost_rows_of_metrics_are_noticed(tmp_path: Path, lost: int) -> None:
    settings = small_run(tmp_path, epochs=4)
    whole = run(settings, tmp_path / "whole")
    stopped(settings, tmp_path / "run", after=3)
    metrics = tmp_path / "run/metrics.jsonl"
    lines = metrics.read_text().splitlines(keepends=True)
    metrics.write_text("".join(lines[:lost] + lines[lost + 1 :]))
    assert run(settings, tmp_path / "run") == whole
    assert "metrics.jsonl has lost rows" in str(read_set_aside(tmp_path))


def test_a_changed_row_of_metrics_is_noticed(tmp_path: Path) -> None:
    settings = small_run(tmp_path, epochs=3)
    run(settings, tmp_path / "run")
    metrics = tmp_path / "run/metrics.jsonl"
    rows, warnings = read_rows(metrics)
    assert (len(rows), warnings) == (3, [])
    lines = metrics.read_text().splitlines(keepends=True)
    metrics.write_text(lines[0] + lines[1].replace('"epoch": 2', '"epoch": 9') + lines[2])
    rows, warnings = read_rows(metrics)
    assert [row["epoch"] for row in rows] == [1, 3]
    assert "line 2 was changed, or lines before it are lost" in warnings[0]
    metrics.write_text(lines[0] + lines[2])
    assert "line 2 was changed, or lines before it are lost" in read_rows(metrics)[1][0]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def flatter(path: Path) -> None:
    """Write a better score into a result."""
    document = json.loads(path.read_text())
    document["metrics"]["test"]["accuracy"] = 1.0
    path.write_text(json.dumps(document))


def other_seed(path: Path) -> None:
    path.write_text(path.read_text().replace('"seed": 0', '"seed": 5'))


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("*/result.json", cut),
        ("*/result.json", empty),
        ("*/result.json", flatter),
        ("*/settings.json", cut),
        ("*/settings.json", other_seed),
        ("comparison.json", cut),
    ],
)
def test_damaged_records_are_kept_and_their_runs_repeated(
    tmp_path: Path, here: Here, name: str, damage: Callable[[Path], None]
) -> None:
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(RAW))
    code, whole, said = here("compare", "small.yaml", "--out", "out", "--json")
    assert code == 0, said
    before = recorded(tmp_path / "out")
    path = sorted(tmp_path.glob(f"out/{name}"))[0]
    damage(path)
    left = path.read_bytes()
    code, again, said = here("compare", "small.yaml", "--out", "out", "--json")
    assert (code, again) == (0, whole), said
    now = recorded(tmp_path / "out")
    assert {name: now[name] for name in before} == before
    ((kept, _),) = read_set_aside(tmp_path / "out").items()
    assert (kept / path.name).read_bytes() == left
    assert f"kept in {kept.relative_to(tmp_path)}" in said.replace("\n", " ")
    code, again, said = here("compare", "small.yaml", "--out", "out", "--json")
    assert (code, again) == (0, whole)
    assert "kept in" not in said


def test_nothing_temporary_stays_after_a_kill(tmp_path: Path) -> None:
    killed = subprocess.Popen(["true"])
    killed.wait()
    for pid in (killed.pid, os.getpid()):
        (tmp_path / f".a.json.{platform.node()}.{pid}.tmp").write_text("half")
    (tmp_path / f".a.json.elsewhere.{killed.pid}.tmp").write_text("half")
    (tmp_path / f".out.{platform.node()}.{killed.pid}.tmp").mkdir()
    write_json(tmp_path / "a.json", {})
    remove_leftovers(tmp_path / "out")
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"a.json", f".a.json.elsewhere.{killed.pid}.tmp"}


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "run").mkdir()
    (tmp_path / "run/.lock").symlink_to(tmp_path / "pipe")
    with pytest.raises(LupiError, match="is not a regular file, so it is not lupi's lock"):
        run(small_run(tmp_path), tmp_path / "run")
