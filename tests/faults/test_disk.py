"""A full disk, a folder that can't be written, damaged records: a clear word, no wrong number."""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import Here
from made_images import image_folder
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
