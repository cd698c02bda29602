import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lupi.errors import LupiError
from lupi.loaders.files import Dialect, Row, read_rows
from made_reviews import write_csv, write_jsonl

ROWS: list[list[Any]] = [
    ["review", "label", "other"],
    ["good, and\nlong", "1", "a"],
    ["bad", "0", "b"],
]
EXPECTED = [
    Row(1, {"review": "good, and\nlong", "label": "1"}),
    Row(2, {"review": "bad", "label": "0"}),
]


def write_parquet(path: Path, rows: list[list[Any]]) -> Path:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    names, *values = rows
    parquet.write_table(pa.table(dict(zip(names, zip(*values, strict=True), strict=True))), path)
    return path


WRITERS: dict[str, Callable[[Path, list[list[Any]]], Path]] = {
    ".csv": write_csv,
    ".tsv": lambda path, rows: write_csv(path, rows, "\t"),
    ".jsonl": write_jsonl,
    ".parquet": write_parquet,
}


@pytest.mark.parametrize("suffix", WRITERS)
@pytest.mark.parametrize("packed", [False, True])
def test_every_format_gives_the_same_rows(tmp_path: Path, suffix: str, packed: bool) -> None:
    path = WRITERS[suffix](tmp_path / f"reviews{suffix}", ROWS)
    if packed:
        path = tmp_path / f"packed{suffix}.gz"
        path.write_bytes(gzip.compress((tmp_path / f"reviews{suffix}").read_bytes()))
    assert list(read_rows(path, ["review", "label"])) == EXPECTED
    (first, _) = read_rows(path, ["review"], ["label", "spans"])
    assert first.cells["label"] == "1"


def test_the_separator_is_found_or_given(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", [["x;y", "z"], ["1", "2"]], ";")
    assert [row.cells for row in read_rows(path, ["z"])] == [{"z": "2"}]
    path = write_csv(tmp_path / "b.csv", [["a|b", "c"], ["1", "2"]], ",")
    assert [row.cells for row in read_rows(path, ["a|b"], dialect=Dialect(separator=","))] == [
        {"a|b": "1"}
    ]


def test_a_bad_row_is_told_with_its_number(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", [["review", "label"], ["x", "1"], ["y"], ["z", "0"]])
    rows = list(read_rows(path, ["review"]))
    assert [row.number for row in rows] == [1, 2, 3]
    assert rows[1].bad == "it has 1 fields, the first line 2"
    path = tmp_path / "b.jsonl"
    path.write_text('{"review": "x"}\n{"review": \n[1]\n')
    bad = [row.bad for row in read_rows(path, ["review"])]
    assert bad[0] is None
    assert "not JSON" in str(bad[1])
    assert "one object per line, got list" in str(bad[2])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", "is empty"),
        ("a.jsonl", b"\n", "is empty"),
        ("a.csv", b"review\nna\xefve\n", "0xef in line 2.*cp1252"),
        ("a.csv", b"rev\xefiew\nx\n", "is not UTF-8 text"),
        ("a.csv", "review\nx\n".encode("utf-16"), "set task.encoding=utf-16"),
        ("a.csv", b"review\na\0b\n", "line 2 contains a NUL byte"),
        ("a.csv", b"reviews\nx\n", "did you mean `reviews`"),
        ("a.csv", b"review,review\nx,y\n", "more than one column named 'review'"),
        ("a.jsonl", b'{"text": "x"}\n', "no column is called `review`"),
        ("a.parquet", b"PAR1 no", "can't be read as Parquet"),
        ("a.csv.gz", b"no gzip", "can't be read"),
        ("a.csv.gz", gzip.compress(b"review\nx\n", mtime=0)[:-9], "can't be read"),
        ("a.docx", b"x", "expected one of .csv"),
        ("a", b"x", "no suffix"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(LupiError, match=message):
        list(read_rows(path, ["review"]))


def test_an_open_quotation_mark_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lupi.loaders.files.MAX_CELL", 50)
    path = tmp_path / "a.csv"
    path.write_text('review\nx\n"open\n' + "y\n" * 100)
    with pytest.raises(LupiError, match=r"after row 1: .*quotation mark"):
        list(read_rows(path, ["review"]))


def test_other_encodings_are_read_if_named(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("review\nnaïve\n".encode("cp1252"))
    (row,) = read_rows(path, ["review"], dialect=Dialect(encoding="cp1252"))
    assert row.cells == {"review": "naïve"}
    with pytest.raises(LupiError, match="unknown encoding"):
        Dialect.parse({"encoding": "klingon"}, "task")


def test_no_file_fills_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lupi.limits.ALWAYS_READ", 1000)
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(b"review\n" + b"x" * 10_000_000))
    with pytest.raises(LupiError, match="would come out of it"):
        list(read_rows(path, ["review"]))
    monkeypatch.setattr("lupi.loaders.files.MAX_CHARACTERS", 10)
    with pytest.raises(LupiError, match="more than 10 characters"):
        list(read_rows(write_csv(tmp_path / "a.csv", ROWS), ["review"]))


def test_a_separator_is_for_csv(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", ROWS)
    with pytest.raises(LupiError, match=r"separator has no effect: .* is not CSV"):
        list(read_rows(path, ["review"], dialect=Dialect(separator=",")))
    with pytest.raises(LupiError, match="does not exist"):
        list(read_rows(tmp_path / "none.csv", ["review"]))


def test_objects_may_lack_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"review": "x"}\n{"review": "y", "spans": [[0, 1]]}\n')
    rows = list(read_rows(path, ["review", "spans"]))
    assert [row.cells["spans"] for row in rows] == [None, [[0, 1]]]
