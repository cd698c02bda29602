import gzip
import sys
import warnings
import zipfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from lupi.errors import LupiError
from lupi.loaders.content import fingerprint_of
from lupi.loaders.files import Dialect, list_columns, read_frame
from lupi.loaders.tables.settings import TableSettings


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_is_found(tmp_path: Path, separator: str) -> None:
    path = tmp_path / "a.csv"
    lines = [["a", "b", "c d"], ["1", "2.5", "x, y" if separator != "," else "x"]] * 1
    path.write_text("\n".join(separator.join(line) for line in lines) + "\n")
    frame = read_frame(path)
    assert list(frame.columns) == ["a", "b", "c d"]
    assert frame["b"].tolist() == [2.5]


def test_without_a_header_columns_are_numbered(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("5,x\n7,y\n")
    frame = read_frame(path, Dialect(header=False))
    assert list(frame.columns) == ["0", "1"]
    assert frame["0"].tolist() == [5, 7]


def test_a_decimal_comma_and_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("größe;b\n1,5;2\n", encoding="utf-8-sig")
    frame = read_frame(path, Dialect(decimal=","))
    assert frame["größe"].tolist() == [1.5]


def test_parquet_is_the_same_table(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1, 2], "when": pd.to_datetime(["2024-01-02", "2024-01-03"])})
    frame.to_parquet(tmp_path / "a.parquet")
    pd.testing.assert_frame_equal(read_frame(tmp_path / "a.parquet"), frame)


def test_some_columns_and_rows_of_parquet_are_those_of_the_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    frame = pd.DataFrame({"a": range(1000), "b": [f"{i % 7}" for i in range(1000)], "c": 0.5})
    frame.to_parquet(path, row_group_size=64)
    assert list_columns(path) == ["a", "b", "c"]
    some = read_frame(path, columns=frozenset({"b", "a", "absent"}), max_rows=100)
    assert list(some.columns) == ["a", "b"]
    assert some["a"].is_monotonic_increasing
    assert some["a"].nunique() == 100
    assert some["a"].max() > 900
    pd.testing.assert_frame_equal(
        some, frame.loc[some["a"], ["a", "b"]].reset_index(drop=True), check_dtype=False
    )
    frame.to_csv(tmp_path / "a.csv", index=False)
    same = read_frame(tmp_path / "a.csv", max_rows=100)
    assert same["a"].tolist() == some["a"].tolist()
    assert len(read_frame(tmp_path / "a.csv", max_rows=5000)) == 1000


def test_names_of_rows_are_no_column_of_parquet(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pd.DataFrame({"id": ["r", "s"], "a": [1, 2]}).set_index("id").to_parquet(path)
    assert list_columns(path) == ["a"]
    assert list(read_frame(path).columns) == ["a"]


def test_gzip_is_the_same_table(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a;b\n1;x\n2;y\n")
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress((tmp_path / "a.csv").read_bytes()))
    pd.testing.assert_frame_equal(read_frame(tmp_path / "a.csv.gz"), read_frame(tmp_path / "a.csv"))
    (tmp_path / "a.csv.gz").write_bytes(b"a;b\n1;x\n")
    with pytest.raises(LupiError, match=r"a.csv.gz can't be read as gzip"):
        read_frame(tmp_path / "a.csv.gz")


def test_excel_is_the_same_table(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", None], "c d": [0.5, 1.5]})
    frame.to_excel(tmp_path / "a.xlsx", index=False)
    pd.testing.assert_frame_equal(read_frame(tmp_path / "a.xlsx"), frame, check_dtype=False)
    (tmp_path / "b.xlsx").write_bytes(b"PK no sheet")
    with pytest.raises(LupiError, match=r"b.xlsx can't be read as Excel"):
        read_frame(tmp_path / "b.xlsx")


def test_excel_without_openpyxl_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(tmp_path / "a.xlsx", "w") as file:
        file.writestr("sheet", "x")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(LupiError, match=r"pip install 'lupi\[excel\]'.*or save it as CSV"):
        read_frame(tmp_path / "a.xlsx")


def test_columns_without_a_name_are_named_after_their_place(tmp_path: Path) -> None:
    """`''` was a column that no option could name."""
    (tmp_path / "a.csv").write_text(",a,\n0,5,x\n1,7,y\n")
    assert list(read_frame(tmp_path / "a.csv").columns) == ["unnamed 1", "a", "unnamed 3"]


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a\n1\n")
    before = fingerprint_of([path])
    assert read_frame(path)["a"].tolist() == [1]
    path.write_text("a\n2\n")
    assert fingerprint_of([path]) != before
    assert read_frame(path)["a"].tolist() == [2]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", None, "a.csv does not exist"),
        ("a.csv", b"", "a.csv is empty"),
        ("a.csv", b" \n\n", "a.csv is empty"),
        ("a.csv", b"a,b\n", "a.csv has no rows"),
        ("a.csv", b"\x89PNG\r\n\0\0\0\r", "a.csv is not UTF-8 text"),
        ("a.csv", b"a,b\n1,\xff\xfe and more of it\n", "a.csv is not UTF-8 text"),
        ("a.csv", b"a,b\n1,2\n1,2,3\n", "can't be read as CSV"),
        ("a.csv", b"a,b\n1,2,3\n4,5,6\n", "can't be read as CSV: Length of header"),
        ("a.csv", b"\xc2\xa0\n", "a.csv is empty"),
        ("a.csv", b"\x80", "a.csv is not UTF-8 text"),
        ("a.parquet", b"a,b\n1,2\n", "can't be read as Parquet"),
    ],
)
def test_what_is_no_table(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(LupiError, match=message):
        read_frame(tmp_path / name)


def test_a_folder_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(LupiError, match="can't be read"):
        read_frame(tmp_path)


def test_a_row_that_is_too_long_is_an_error_whatever_becomes_of_warnings(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2,3\n4,5,6\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(LupiError, match="Length of header"):
            read_frame(tmp_path / "a.csv")


def test_a_first_line_of_many_columns_is_read_whole(tmp_path: Path) -> None:
    names = [f"column{i}" for i in range(9000)]  # more than 64 KiB
    (tmp_path / "a.csv").write_text(f"{','.join(names)}\n{','.join(['1'] * 9000)}\n")
    assert list(read_frame(tmp_path / "a.csv").columns) == names


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "cp1252", "utf-8-sig"])
def test_other_encodings(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text("größe;wo\n1;Zürich\n2;Genf\n", encoding=encoding)
    frame = read_frame(path, Dialect(encoding=encoding))
    assert list(frame.columns) == ["größe", "wo"]
    assert frame["wo"].tolist() == ["Zürich", "Genf"]
    if encoding == "utf-8-sig":
        assert read_frame(path).equals(frame)
        return
    advice = "task.encoding=utf-16" if encoding == "utf-16" else "task.encoding=latin-1"
    with pytest.raises(LupiError, match=advice):
        read_frame(path)


@pytest.mark.parametrize(
    ("path", "setting"),
    [
        ("a.parquet", {"separator": ";"}),
        ("a.parquet", {"decimal": ","}),
        ("a.pq", {"encoding": "latin-1"}),
        ("a.parquet", {"header": False}),
        ("a.xlsx", {"decimal": ","}),
    ],
)
def test_settings_of_csv_are_refused_where_there_is_none(
    path: str, setting: dict[str, Any]
) -> None:
    roles = {"target": "y", "privileged": ["s"]}
    with pytest.raises(LupiError, match=f"{next(iter(setting))} has no effect: {path} is not CSV"):
        TableSettings.parse({"path": path, **roles, **setting}, "task")
    TableSettings.parse({"path": path, "val": "val.csv", "test": "test.csv", **roles}, "task")


def test_a_first_row_of_data_in_excel_is_not_refused() -> None:
    TableSettings.parse({"path": "a.xlsx", "target": "1", "privileged": ["0"], "header": False}, "")
