"""Rows as they come: the same x as in training, whatever stands around a row."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lupi.errors import LupiError
from lupi.loaders.files import Dialect, read_frame, resolve
from lupi.loaders.tables.encoder import TableEncoder
from lupi.ship.rows import RowReader
from made_table import HEADER, rows, write_csv

FEATURES = HEADER[:5]


def reader(path: Path, batch_size: int = 128, **how: object) -> RowReader:
    frame = read_frame(path)[FEATURES]
    return RowReader(TableEncoder.lay_out(frame).fit(frame), Dialect.parse(how, "csv"), batch_size)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "deliveries.csv", rows())


def test_lines_become_what_training_made_of_the_file(table: Path) -> None:
    frame = read_frame(table)[FEATURES]
    expected = TableEncoder.lay_out(frame).fit(frame).transform(frame)
    for batch_size in (1, 7, 1000):
        own = reader(table, batch_size)
        chunks = list(own.read(table))
        assert np.array_equal(np.concatenate([chunk.x for chunk in chunks]), expected)
        assert [n for chunk in chunks for n in chunk.numbers] == list(range(1, 121))
        assert list(own.ignored) == ["rain", "traffic", "hours", "late"]


def test_parquet_is_read_too(table: Path, tmp_path: Path) -> None:
    pd.read_csv(table).to_parquet(tmp_path / "deliveries.parquet")
    own = reader(table)
    (csv,), (parquet,) = list(own.read(table)), list(own.read(tmp_path / "deliveries.parquet"))
    assert np.array_equal(csv.x, parquet.x)


def test_a_row_does_not_depend_on_its_neighbours(tmp_path: Path) -> None:
    made = [["01" if i % 2 else "a7", "1" if i % 3 else "2"] for i in range(30)]
    path = write_csv(tmp_path / "codes.csv", made, ["code", "kind"])
    frame = read_frame(path)
    own = RowReader(TableEncoder.lay_out(frame, ["kind"]).fit(frame), Dialect(), 1)
    (alone,) = own.read_csv(["code,kind\n", "01,1.0\n"], "stdin")
    first = next(iter(own.read_csv(["code,kind\n", "01,1\n", "a7,2\n"], "stdin")))
    assert np.array_equal(alone.x, first.x)
    assert alone.x.sum() == 2  # both are known categories


def test_other_separators_and_signs(table: Path) -> None:
    head, line = ";".join(FEATURES) + "\n", "57,5;old;true;2024-05-26;NA\n"
    (german,) = reader(table, decimal=",").read_csv([head, line], "stdin")
    plain = "57.5,old,True,2024-05-26,\n"
    (english,) = reader(table).read_csv([",".join(FEATURES) + "\n", plain], "stdin")
    assert np.array_equal(german.x, english.x)
    nameless = read_frame(table).iloc[:, :1].set_axis(["0"], axis=1)
    own = RowReader(TableEncoder.lay_out(nameless).fit(nameless), Dialect(header=False), 9)
    assert [chunk.numbers for chunk in own.read_csv(["57.5\n", "3\n"], "stdin")] == [[1, 2]]


def test_bad_rows_are_told_apart(table: Path) -> None:
    lines = [
        ",".join(FEATURES) + "\n",
        "1,old,true,2024-01-01,2\n",
        "far,old,true,2024-01-01,2\n",
        "1,old\n",
        "\n",
        "1,old,true,soon,2\n",
        "1,new,,,\n",
    ]
    (chunk,) = reader(table).read_csv(lines, "stdin")
    assert chunk.numbers == [1, 5]
    assert len(chunk.x) == 2
    assert chunk.bad == [
        (2, "km is 'far', expected a number, or nothing if it is missing"),
        (3, "has 2 fields, but the first line has 5"),
        (4, "sent is 'soon', expected a date such as 2024-05-26, or nothing if it is missing"),
    ]


def test_a_batch_may_be_all_bad(table: Path) -> None:
    lines = [",".join(FEATURES) + "\n", "far,old,true,2024-01-01,2\n", "1,old,true,2024-01-01,2\n"]
    bad, good = reader(table, batch_size=1).read_csv(lines, "stdin")
    assert (len(bad.x), [number for number, _ in bad.bad]) == (0, [1])
    assert (good.numbers, good.bad) == ([2], [])


@pytest.mark.parametrize("most_known", [1, 1000])
def test_texts_mean_the_same_when_they_come_again(
    table: Path, monkeypatch: pytest.MonkeyPatch, most_known: int
) -> None:
    monkeypatch.setattr("lupi.ship.rows.MOST_KNOWN", most_known)
    good, bad = "1,old,true,2024-01-01,2\n", "far,old,true,2024-01-01,2\n"
    lines = [",".join(FEATURES) + "\n", good, bad, "2,new,,,\n", good, bad, good]
    chunks = list(reader(table, batch_size=2).read_csv(lines, "stdin"))
    assert [chunk.numbers for chunk in chunks] == [[1], [3, 4], [6]]
    assert [number for chunk in chunks for number, _ in chunk.bad] == [2, 5]
    assert np.array_equal(chunks[0].x[0], chunks[1].x[1])
    assert np.array_equal(chunks[0].x, chunks[2].x)
    assert not np.array_equal(chunks[1].x[0], chunks[1].x[1])


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "stdin is empty"),
        (["km,vann,packed,sent,weight\n"], "did you mean `vann`"),
        (["km,van,km,packed,sent,weight\n"], "more than one column is named 'km'"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(table: Path, lines: list[str], message: str) -> None:
    with pytest.raises(LupiError, match=message):
        list(reader(table).read_csv(lines, "stdin"))


def test_a_file_that_is_no_table_is_refused(table: Path, tmp_path: Path) -> None:
    with pytest.raises(LupiError, match=r"none\.csv does not exist"):
        list(reader(table).read(tmp_path / "none.csv"))
    (tmp_path / "latin.csv").write_bytes(b"km,van\n1,\xe9t\xe9\n")
    with pytest.raises(LupiError, match="not UTF-8"):
        list(reader(table).read(tmp_path / "latin.csv"))


def test_the_training_file_is_read_as_in_training(tmp_path: Path) -> None:
    """A header with more commas than the separator was taken for another dialect."""
    path = tmp_path / "sizes.csv"
    path.write_text("size, w, h;y\n" + "".join(f"{i},5;{i}\n" for i in range(9)))
    how = resolve(path, Dialect(decimal=","))
    frame = read_frame(path, how)[["size, w, h"]]
    encoder = TableEncoder.lay_out(frame).fit(frame)
    own = RowReader(encoder, how, 100)
    (batch,) = own.read(path)
    assert np.array_equal(batch.x, encoder.transform(frame))
    (other,) = own.read_csv(['"size, w, h",y\n', '"3,5",1\n'], "stdin")  # another separator
    assert np.array_equal(other.x, batch.x[3:4])
