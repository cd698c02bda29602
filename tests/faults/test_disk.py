"""A full disk, a folder that can't be written, damaged records: a clear word, no wrong number."""

import contextlib
import resource
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import Here
from lupi.errors import LupiError
from lupi.train.run import run
from lupi.train.settings import RunSettings
from made_images import image_folder
from made_runs import run_from
from the_command import lupi
from tiny_comparison import recorded, write_settings


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    image_folder(tmp_path / "pets", n_images=8)
    return tmp_path


@contextlib.contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path]:
    """Mount a small file system of its own."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("only root may mount a file system here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.slow
def test_a_full_disk_and_room_again(pets: Path) -> None:
    write_settings(pets, seeds=1)
    expected = lupi("compare", "tiny.yaml", "--out", "undisturbed", "--json", cwd=pets)
    with mounted(pets / "small", "size=300k") as small:
        full = lupi("compare", "tiny.yaml", "--out", "small/out", cwd=pets)
        assert "No space left on device" in full.stderr
        assert "Traceback" not in full.stderr
        subprocess.run(["mount", "-o", "remount,size=50m", str(small)], check=True)
        again = lupi("compare", "tiny.yaml", "--out", "small/out", "--json", cwd=pets)
        assert again.stdout == expected.stdout
        assert recorded(small / "out") == recorded(pets / "undisturbed")


def test_a_cache_without_room(pets: Path, here: Here) -> None:
    write_settings(pets)
    with mounted(pets / "cache", "size=8k"):
        code, _, said = here("compare", "tiny.yaml")
    assert code == 2
    assert "task.cache" in said
    assert "Traceback" not in said


def test_a_folder_that_is_read_only(pets: Path, here: Here) -> None:
    write_settings(pets)
    with mounted(pets / "fixed", "size=1m") as fixed:
        subprocess.run(["mount", "-o", "remount,ro", str(fixed)], check=True)
        code, _, said = here("compare", "tiny.yaml", "--out", "fixed/out")
    assert code == 2
    assert "--out: fixed/out can't be used: Read-only file system" in said


def test_a_file_in_the_place_of_a_folder(pets: Path, here: Here) -> None:
    write_settings(pets)
    (pets / "out").write_text("")
    code, _, said = here("compare", "tiny.yaml", "--out", "out")
    assert code == 2
    assert "--out: out can't be used: File exists" in said


def small_run(folder: Path, epochs: int = 3, **train_changes: object) -> RunSettings:
    raw = {"task": {"name": "digits"}, "network": {"width": 2}, "method": "het-dropout"}
    train = {"epochs": epochs, "batch_size": 16, **train_changes}
    return run_from({**raw, "train": train, "size": 20, "seed": 0})


@pytest.fixture(autouse=True)
def _keep_every_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lupi.train.saved.checkpoint.SECONDS_BETWEEN", 0)


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


@pytest.mark.parametrize("place", [0.02, 0.3, 0.6, 0.9, 0.999])
def test_a_checkpoint_with_one_wrong_bit_is_refused(tmp_path: Path, place: float) -> None:
    settings = small_run(tmp_path, epochs=2)
    checkpoint = stopped(settings, tmp_path / "run", after=1)
    content = bytearray(checkpoint.read_bytes())
    content[int(place * len(content))] ^= 4
    checkpoint.write_bytes(content)
    with pytest.raises(LupiError, match=r"last.safetensors can't be read as a checkpoint"):
        run(settings, tmp_path / "run")


def test_a_student_with_one_wrong_bit_is_refused(tmp_path: Path) -> None:
    """No epoch is better than the first, so that its student is the one to be read."""
    settings = small_run(tmp_path, epochs=2, lr=1e-12, reestimate_batchnorm=False)
    stopped(settings, tmp_path / "run", after=1)
    student = tmp_path / "run/checkpoint/student.safetensors"
    content = bytearray(student.read_bytes())
    content[-1] ^= 4
    student.write_bytes(content)
    with pytest.raises(LupiError, match="it is damaged: its SHA-256 is not the one"):
        run(settings, tmp_path / "run")


def test_lost_rows_of_metrics_are_noticed(tmp_path: Path) -> None:
    settings = small_run(tmp_path, epochs=3)
    stopped(settings, tmp_path / "run", after=2)
    metrics = tmp_path / "run/metrics.jsonl"
    metrics.write_text(metrics.read_text().splitlines(keepends=True)[0])
    with pytest.raises(LupiError, match=r"metrics.jsonl has lost rows"):
        run(settings, tmp_path / "run")
