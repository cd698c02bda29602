"""Only regular files, of a bounded size."""

import os
import socket
from pathlib import Path

import pytest

from lupi.errors import MAX_MESSAGE, LupiError
from lupi.limits import check_regular, open_regular, read_regular


def test_what_is_not_a_regular_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "folder").mkdir()
    (tmp_path / "gone").symlink_to(tmp_path / "nothing")
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(tmp_path)  # the name of a socket is short
        listener.bind("socket")
        os.chdir(here)
        for name in ("pipe", "zero", "folder", "gone", "socket"):
            for read in (check_regular, open_regular, read_regular):
                with pytest.raises(OSError):
                    read(tmp_path / name)


def test_a_sparse_file_may_not_expand_to_more_than_a_compressed_one(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.write(b"x" * 4096)
        file.truncate(2**40)
    with pytest.raises(OSError, match="it is sparse"):
        read_regular(path)
    with path.open("r+b") as file:
        file.truncate(10_000)
    assert len(read_regular(path)) == 10_000


def test_a_limit_is_checked_before_reading(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    (tmp_path / "link").symlink_to("a")
    assert read_regular(tmp_path / "link", 3) == b"abc"
    with pytest.raises(OSError, match="it has 3 bytes; at most 2 are read"):
        read_regular(tmp_path / "a", 2)


def test_a_message_never_repeats_megabytes() -> None:
    text = str(LupiError(f"row 1 is {'x' * 10_000_000}, expected a number"))
    assert text.startswith("row 1 is xxx")
    assert text.endswith("expected a number")
    assert len(text) < MAX_MESSAGE + 100
    assert str(LupiError("short")) == "short"
