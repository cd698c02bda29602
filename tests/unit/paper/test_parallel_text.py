import gzip
from pathlib import Path

import pytest

from lupi.errors import LupiError
from lupi_paper.translation.text.parallel_text import read_lines, read_pairs


def test_lines_end_with_a_newline_only(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes("\ufeffone\r\ntwo\u2028still two\x0b\n\nlast".encode())
    assert read_lines(tmp_path / "a") == ["one", "two\u2028still two\x0b", "", "last"]


def test_texts_may_be_compressed(tmp_path: Path) -> None:
    (tmp_path / "train.en").write_text("a dog\n")
    (tmp_path / "train.de.gz").write_bytes(gzip.compress(b"ein Hund\n"))
    pairs = read_pairs(tmp_path, "train", "en", "de")
    assert (pairs.source, pairs.target) == (["a dog"], ["ein Hund"])


@pytest.mark.parametrize(
    ("english", "german", "message"),
    [
        (b"a\nb\n", b"a\n", r"train.en has 2 lines, .*train.de has 1: line i of one"),
        (b"", b"", r"train.en is empty"),
        (b"a\n", None, r"train.de does not exist, nor does train.de.gz"),
        (b"a\nna\xefve\n", b"a\nb\n", r"train.en, line 2: byte 0xef at place 3 is not UTF-8"),
    ],
)
def test_bad_texts(tmp_path: Path, english: bytes, german: bytes | None, message: str) -> None:
    (tmp_path / "train.en").write_bytes(english)
    if german is not None:
        (tmp_path / "train.de").write_bytes(german)
    with pytest.raises(LupiError, match=message):
        read_pairs(tmp_path, "train", "en", "de")


def test_a_torn_gz_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "train.en.gz").write_bytes(gzip.compress(b"a dog\n" * 99)[:20])
    with pytest.raises(LupiError, match=r"train.en.gz can't be read"):
        read_lines(tmp_path / "train.en.gz")
