"""A table from a CSV, Parquet or Excel file, its columns named and nothing interpreted yet."""

import csv
import io
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lupi.errors import LupiError
from lupi.loaders.content import fingerprint_of
from lupi.loaders.subsets import some_rows
from lupi.loaders.tables.parquet import parquet_columns, read_parquet
from lupi.unpack import read_gzip, refuse_growth

if TYPE_CHECKING:
    import pandas as pd

SEPARATORS = (",", ";", "\t", "|")
N_SNIFFED = 20
"""Lines looked at to find the separator, …"""
N_BYTES_SNIFFED = 2**16
"""… of about so many bytes; the last of them is whole."""
PARQUET = (".parquet", ".pq")
EXCEL = (".xlsx", ".xlsm")
TABLES = (".csv", ".tsv", ".txt", ".data", ".csv.gz", ".tsv.gz", ".txt.gz", *PARQUET, *EXCEL)
"""How the names of tables end."""


def read_table(
    path: Path,
    separator: str | None = None,
    header: bool = True,
    decimal: str = ".",
    encoding: str = "utf-8",
    columns: frozenset[str] | None = None,
    max_rows: int | None = None,
) -> "pd.DataFrame":
    """Return a table whose columns have distinct names, all of them text.

    Args:
        path: CSV, perhaps gzipped (.gz); Parquet (.parquet, .pq); the first sheet of an Excel
            file (.xlsx, .xlsm).
        separator: of a CSV's columns; None: found out from its first lines.
        header: whether a CSV's first line names the columns; otherwise they are "0", "1", ….
        decimal: the sign between a CSV's whole numbers and their fractions.
        encoding: of a CSV's text.
        columns: those of a Parquet file to read, if they are there; None: all.
        max_rows: as many rows, drawn at random, if there are more.
    """
    content = fingerprint_of([path])
    if path.suffix.lower() in PARQUET:
        return _read_parquet(path, content, columns, max_rows)
    frame = _read(path, content, separator, header, decimal, encoding)
    if max_rows is None or len(frame) <= max_rows:
        return frame
    return frame.iloc[some_rows(len(frame), max_rows)].reset_index(drop=True)


def list_columns(
    path: Path, separator: str | None, header: bool, decimal: str, encoding: str
) -> list[str]:
    """Return the names of a table's columns; of a Parquet file, without reading a row."""
    if path.suffix.lower() in PARQUET:
        return parquet_columns(path)
    return [str(name) for name in read_table(path, separator, header, decimal, encoding).columns]


@lru_cache(maxsize=4)
def _read(
    path: Path, content: str, separator: str | None, header: bool, decimal: str, encoding: str
) -> "pd.DataFrame":
    """Read; `content` is there for the cache alone, so that a changed file is read again."""
    if path.suffix.lower() in EXCEL:
        frame = _read_excel(path, header)
    else:
        frame = _read_csv(path, separator, header, decimal, encoding)
    return _with_rows(path, frame)


@lru_cache(maxsize=4)
def _read_parquet(
    path: Path, content: str, columns: frozenset[str] | None, max_rows: int | None
) -> "pd.DataFrame":
    """Read; `content` is there for the cache alone."""
    frame = read_parquet(path, columns, max_rows)
    _refuse_duplicates(path, list(frame.columns))
    return _with_rows(path, frame)


def _with_rows(path: Path, frame: "pd.DataFrame") -> "pd.DataFrame":
    if not len(frame):
        raise LupiError(f"table {path} has no rows")
    return frame


def _read_excel(path: Path, header: bool) -> "pd.DataFrame":
    import pandas as pd

    try:
        refuse_growth(path)
        frame = pd.read_excel(path, header=0 if header else None, engine="openpyxl")
    except ImportError:
        raise LupiError(
            f"table {path}: Excel files need openpyxl (pip install 'lupi[excel]'); or save it as "
            "CSV (UTF-8)"
        ) from None
    except LupiError:
        raise
    except Exception as error:  # a hostile file may raise anything inside openpyxl
        raise LupiError(f"table {path} can't be read as Excel: {error}") from None
    fields = ["" if str(name).startswith("Unnamed: ") else str(name) for name in frame.columns]
    frame.columns = pd.Index(column_names(fields))
    _refuse_duplicates(path, list(frame.columns))
    return frame


def column_names(fields: Sequence[str]) -> list[str]:
    """Return the names in a header; columns without one are named after their place, from 1."""
    return [name.strip() or f"unnamed {i}" for i, name in enumerate(fields, start=1)]


def without_mark(encoding: str) -> str:
    """Return the encoding that leaves out the mark with which some programs begin UTF-8."""
    return "utf-8-sig" if encoding == "utf-8" else encoding


def _read_csv(
    path: Path, separator: str | None, header: bool, decimal: str, encoding: str
) -> "pd.DataFrame":
    import pandas as pd

    content, encoding = read_content(path), without_mark(encoding)
    lines = _first_lines(path, content, encoding)
    separator = separator or _sniff(lines)
    try:
        first = next(csv.reader(lines, delimiter=separator))
    except csv.Error as error:
        raise LupiError(f"table {path} can't be read as CSV: {error}") from None
    names = column_names(first) if header else [str(i) for i in range(len(first))]
    _refuse_duplicates(path, names)
    options: dict[str, Any] = {"sep": separator, "decimal": decimal, "skipinitialspace": True}
    try:
        with warnings.catch_warnings():
            # It warns of rows that are longer than the first line, and leaves values out.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame: pd.DataFrame = pd.read_csv(
                io.BytesIO(content),
                header=0 if header else None,
                names=names,
                index_col=False,
                encoding=encoding,
                low_memory=False,
                **options,
            )
    except (ValueError, OverflowError, pd.errors.ParserWarning) as error:
        raise LupiError(f"table {path} can't be read as CSV: {error}") from None
    return frame


def read_content(path: Path) -> bytes:
    """Return the bytes of a CSV, unpacked if it is gzipped."""
    if path.suffix.lower() != ".gz":
        return path.read_bytes()
    try:
        return read_gzip(path)
    except OSError as error:
        raise LupiError(f"table {path} can't be read as gzip: {error}") from None


def _first_lines(path: Path, content: bytes, encoding: str) -> list[str]:
    """Return some whole lines; refuse what is no text."""
    wide = encoding.startswith(("utf-16", "utf-32"))  # whose line ends are several bytes long
    end = -1 if wide else content.find(b"\n", N_BYTES_SNIFFED)
    start = content if end < 0 else content[:end]
    if not wide and start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise LupiError(f"table {path} looks like UTF-16: set task.encoding=utf-16")
    if not wide and b"\0" in start:
        raise LupiError(f"table {path} is not a text file; expected CSV, or Parquet in a .parquet")
    try:
        text = start.decode(encoding)
    except UnicodeError as error:
        what = encoding.removesuffix("-sig").upper()
        why = str(error)
        if isinstance(error, UnicodeDecodeError):
            why = f"{error.reason} at byte {error.start}"
        raise LupiError(
            f"table {path} is not {what} text ({why}); save it as UTF-8, or set the encoding: "
            "task.encoding=latin-1 (files from Windows: cp1252)"
        ) from None
    lines = [line for line in re.split(r"\r\n|\r|\n", text) if line.strip()]
    if not lines:
        raise LupiError(f"table {path} is empty")
    return lines[:N_SNIFFED]


def _sniff(lines: list[str]) -> str:
    """Return the separator that occurs most often in the line with the fewest of it."""
    return max(SEPARATORS, key=lambda sign: min(line.count(sign) for line in lines))


def _refuse_duplicates(path: Path, names: list[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise LupiError(
            f"table {path} has more than one column named {twice[0]!r}: rename them, "
            "or, if its first line has no column names, set header: false"
        )
