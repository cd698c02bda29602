"""Files with rows and columns: CSV, TSV, JSON lines, Parquet or Excel; text may be gzipped.

`read_frame` reads a whole table, with numbers where a column has only numbers. `read_rows` reads a
few columns row by row and leaves every cell as it is. Both find the dialect of a CSV in the same
way; it is stored with a student, so that new files are read as the training file was.
"""

import codecs
import csv
import io
import json
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from pydantic import Field, field_validator

from lupi.errors import LupiError
from lupi.limits import largest_content, open_regular
from lupi.loaders.content import fingerprint_of
from lupi.loaders.parquet import parquet_columns, parquet_rows, read_parquet
from lupi.settings import Settings, unknown_name
from lupi.subsets import some_rows
from lupi.unpack import read_gzip, refuse_growth

if TYPE_CHECKING:
    import pandas as pd

CSV = (".csv", ".tsv", ".txt", ".data")
JSON_LINES = (".jsonl", ".ndjson", ".json")
PARQUET = (".parquet", ".pq")
EXCEL = (".xlsx", ".xlsm")
SUFFIXES = (*CSV, *JSON_LINES, *PARQUET, *EXCEL)
TABLES = (*SUFFIXES, *(f"{suffix}.gz" for suffix in (*CSV, *JSON_LINES, *PARQUET)))
"""How the names of such files end."""
SEPARATORS = (",", ";", "\t", "|")
N_SNIFFED = 20
"""Rows from which the separator is found, …"""
N_CHARACTERS_SNIFFED = 2**16
"""… of about so many characters."""
MAX_CELL = 2**24
"""Characters of one cell: beyond it, a quotation mark was probably never closed."""
N_OBJECTS = 100
"""Objects of a JSON lines file that may lack a column before it counts as missing."""
MAX_EXCEL_CELLS = 10_000_000
"""Cells of a sheet, empty ones included."""
ALWAYS_READ_EXCEL = 32 * 2**20
"""Bytes that a small Excel file may expand to; XML takes long to read."""
MAX_CHARACTERS = 2**31
"""Characters of all cells that `read_rows` yields."""


class TextFormat(Settings):
    """How the text of a file is written."""

    separator: str | None = Field(None, min_length=1, max_length=1)
    """Column separator of a CSV; by default found in its first rows."""
    encoding: str = "utf-8"
    """Encoding of CSV and JSON lines, such as latin-1, cp1252 or utf-16."""

    @field_validator("encoding")
    @classmethod
    def _is_known(cls, value: str) -> str:
        try:
            return codecs.lookup(value).name
        except LookupError:
            raise ValueError(f"unknown encoding {value!r}; try latin-1 or utf-16") from None

    @property
    def dialect(self) -> "Dialect":
        """The settings that say how a file is read."""
        return Dialect(**self.model_dump(include=set(Dialect.model_fields)))


class Dialect(TextFormat):
    """How a CSV is written."""

    header: bool = True
    """Whether a CSV's first line names the columns; otherwise they are named 0, 1, …."""
    decimal: str = Field(".", min_length=1, max_length=1)
    """Decimal separator of a CSV."""


PLAIN = Dialect()


class Row(NamedTuple):
    """One row of a file."""

    number: int
    """From 1, without the line of names."""
    cells: dict[str, Any]
    """By column; those that are there if the row is bad."""
    bad: str | None = None
    """What is wrong with the row as such."""


def suffix_of(path: Path | str) -> str:
    """Return the suffix that tells the format, without .gz."""
    path = Path(path)
    plain = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    return plain.suffix.lower()


def is_csv(path: Path | str) -> bool:
    """Return whether a file is read as CSV; so are files of unknown suffix."""
    return suffix_of(path) not in (*JSON_LINES, *PARQUET, *EXCEL)


def resolve(path: Path, dialect: Dialect = PLAIN, columns: Sequence[str] = ()) -> Dialect:
    """Return the dialect of a CSV with a separator, given or found; of other files without one.

    Args:
        path: The file.
        dialect: How the file, or another like it, is written.
        columns: Columns that the file should have: the separator that gives most of them.
    """
    if not is_csv(path):
        return dialect.model_copy(update={"separator": None})
    if dialect.separator is not None and not columns:
        return dialect
    with _opened(path) as content:
        lines = _first_lines(_read_lines(content, str(path), dialect.encoding))
    separator = dialect.separator or find_separator(lines, suffix_of(path))
    head = next((line for line in lines if line.strip()), "")
    if columns:
        separator, _ = split_header(head, columns, dialect.header, separator)
    return dialect.model_copy(update={"separator": separator})


def split_header(
    head: str, columns: Iterable[str], header: bool, first: str | None
) -> tuple[str, list[str]]:
    """Return the separator of a line with names, and the names.

    Args:
        head: The first line of a CSV.
        columns: Columns that it should have: the separator that gives most of them.
        header: Whether the line has names; otherwise columns are named 0, 1, ….
        first: Separator to use where others are not better.
    """
    found: dict[str, list[str]] = {}
    for sign in dict.fromkeys((first or max(SEPARATORS, key=head.count), *SEPARATORS)):
        fields = next(csv.reader([head], delimiter=sign, skipinitialspace=True), [])
        names = column_names(fields) if header else [str(i) for i in range(len(fields))]
        found[sign] = distinct_names(names)
    wanted = set(columns)
    best = max(found, key=lambda sign: len(wanted & set(found[sign])))
    return best, found[best]


def find_separator(lines: Sequence[str], suffix: str = ".csv") -> str:
    """Return the separator that gives most rows as many fields as the first, and many of them."""

    def score(sign: str) -> tuple[bool, float, int]:
        try:
            rows = [row for row in islice(csv.reader(lines, delimiter=sign), N_SNIFFED + 1) if row]
        except csv.Error:
            return False, 0.0, 0
        counts = [len(row) for row in rows]
        agree = sum(count == counts[0] for count in counts) / len(counts) if counts else 0.0
        return (bool(counts) and counts[0] > 1), agree, counts[0] if counts else 0

    if suffix == ".tsv" and lines and "\t" in lines[0]:
        return "\t"
    return max(SEPARATORS, key=score)


def column_names(fields: Sequence[str]) -> list[str]:
    """Return the names in a header; columns without one are named after their place, from 1."""
    return [name.strip() or f"unnamed {i}" for i, name in enumerate(fields, start=1)]


def distinct_names(names: Sequence[str]) -> list[str]:
    """Return names without duplicates: the second `a` becomes `a.1`, as in pandas."""
    taken, seen, found = set(names), Counter[str](), []
    for name in names:
        new = name
        while seen[name] and new in taken:
            new = f"{name}.{seen[name]}"
            seen[name] += new in taken
        seen[name] += 1
        taken.add(new)
        found.append(new)
    return found


def read_frame(
    path: Path,
    dialect: Dialect = PLAIN,
    columns: frozenset[str] | None = None,
    max_rows: int | None = None,
) -> "pd.DataFrame":
    """Return a table whose columns have distinct names, all of them text.

    `attrs["renamed"]` of the frame lists columns that were renamed because another has that name;
    `attrs["n_not_drawn"]` counts rows that were left out by `max_rows`.

    Args:
        path: The file; of an Excel file the first sheet is read.
        dialect: How a CSV is written.
        columns: Columns of a Parquet file to read, if they are there; None: all.
        max_rows: Number of rows to draw at random if there are more.
    """
    content = fingerprint_of([path])
    if suffix_of(path) in PARQUET and path.suffix.lower() != ".gz":
        return _read_parquet(path, content, columns, max_rows)
    frame = _read_frame(path, content, dialect.model_dump_json())
    if max_rows is None or len(frame) <= max_rows:
        return frame
    some = frame.iloc[some_rows(len(frame), max_rows)].reset_index(drop=True)
    some.attrs = {**frame.attrs, "n_not_drawn": len(frame) - max_rows}
    return some


def list_columns(path: Path, dialect: Dialect = PLAIN) -> list[str]:
    """Return the names of a table's columns; of a Parquet file, without reading a row."""
    if suffix_of(path) in PARQUET and path.suffix.lower() != ".gz":
        return parquet_columns(path)
    return [str(name) for name in read_frame(path, dialect).columns]


@lru_cache(maxsize=4)
def _read_frame(path: Path, content: str, dialect: str) -> "pd.DataFrame":
    """Read; `content` is an argument for the cache, so that a changed file is read again."""
    import pandas as pd

    how, suffix = Dialect.model_validate_json(dialect), suffix_of(path)
    if suffix in EXCEL:
        frame = _read_excel(path, how.header)
    elif suffix in (*JSON_LINES, *PARQUET):
        rows = list(read_rows(path, (), None, how))
        if bad := next((row for row in rows if row.bad is not None), None):
            raise LupiError(f"table {path}, row {bad.number}: {bad.bad}")
        frame = pd.DataFrame([row.cells for row in rows])
    else:
        frame = _read_csv(path, how)
    return _checked(path, frame)


@lru_cache(maxsize=4)
def _read_parquet(
    path: Path, content: str, columns: frozenset[str] | None, max_rows: int | None
) -> "pd.DataFrame":
    """Read; `content` is an argument for the cache."""
    return _checked(path, read_parquet(path, columns, max_rows))


def _checked(path: Path, frame: "pd.DataFrame") -> "pd.DataFrame":
    import pandas as pd

    if not len(frame):
        raise LupiError(f"table {path} has no rows")
    names = [str(name) for name in frame.columns]
    distinct = distinct_names(names)
    frame.columns = pd.Index(distinct)
    if renamed := [new for old, new in zip(names, distinct, strict=True) if old != new]:
        frame.attrs["renamed"] = renamed  # pandas copies attrs with every column
    return frame


def _read_excel(path: Path, header: bool) -> "pd.DataFrame":
    import pandas as pd

    try:
        refuse_growth(path, ALWAYS_READ_EXCEL)
        _count_cells(path)
        frame = pd.read_excel(path, header=None, engine="openpyxl")
    except ImportError:
        raise LupiError(
            f"table {path}: Excel files need openpyxl (pip install 'lupi[excel]'); or save it as "
            "CSV (UTF-8)"
        ) from None
    except LupiError:
        raise
    except Exception as error:  # a hostile file may raise anything inside openpyxl
        raise LupiError(f"table {path} can't be read as Excel: {error}") from None
    if not header:
        return frame
    first = ["" if pd.isna(name) else str(name) for name in frame.iloc[0]] if len(frame) else []
    frame = frame.iloc[1:].reset_index(drop=True).infer_objects()
    frame.columns = pd.Index(column_names(first))
    return frame


def _count_cells(path: Path) -> None:
    """Refuse a sheet that has more cells from A1 to its last one than are read.

    A sheet with one cell in its last corner takes kilobytes, and has 17 billion cells.
    """
    import openpyxl  # type: ignore[import-untyped]

    book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    try:
        sheet = book.worksheets[0]
        sheet.reset_dimensions()
        n_columns = n_rows = 0
        for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
            filled = next((i for i in range(len(row), 0, -1) if row[i - 1] is not None), 0)
            if filled:
                n_rows, n_columns = number, max(n_columns, filled)
            if n_rows * n_columns > MAX_EXCEL_CELLS:
                raise LupiError(
                    f"table {path} has more than {MAX_EXCEL_CELLS:,} cells from A1 to the last "
                    "cell; delete what is far from the table, or save it as CSV"
                )
    finally:
        book.close()


def _read_csv(path: Path, dialect: Dialect) -> "pd.DataFrame":
    import pandas as pd

    with _opened(path) as content:
        lines = _first_lines(_read_lines(content, f"table {path}", dialect.encoding))
        content.seek(0)
        separator = dialect.separator or find_separator(lines, suffix_of(path))
        filled = [line for line in lines if line.strip()]
        if not filled:
            raise LupiError(f"table {path} is empty")
        try:
            first = next(csv.reader(filled, delimiter=separator, skipinitialspace=True))
        except csv.Error as error:
            raise LupiError(f"table {path} can't be read as CSV: {error}") from None
        names = [str(i) for i in range(len(first))]
        try:
            with warnings.catch_warnings():
                # It warns of rows that are longer than the first line, and leaves values out.
                warnings.simplefilter("error", pd.errors.ParserWarning)
                frame: pd.DataFrame = pd.read_csv(
                    content,
                    sep=separator,
                    decimal=dialect.decimal,
                    skipinitialspace=True,
                    header=0 if dialect.header else None,
                    names=names,
                    index_col=False,
                    encoding=_without_mark(dialect.encoding),
                    low_memory=False,
                )
        except (ValueError, OverflowError, pd.errors.ParserWarning) as error:
            raise LupiError(f"table {path} can't be read as CSV: {error}") from None
    if dialect.header:
        frame.columns = pd.Index(column_names(first))
    return frame


def read_rows(
    path: Path,
    columns: Sequence[str],
    optional: Sequence[str] | None = (),
    dialect: Dialect = PLAIN,
) -> Iterator[Row]:
    """Yield the rows of a file, cells of a CSV as text.

    Args:
        path: The file; its suffix tells the format.
        columns: Columns to keep; each has to be there.
        optional: Columns to keep where the file has them; None: all.
        dialect: How a CSV is written.
    """
    suffix = suffix_of(path)
    if suffix not in SUFFIXES:
        raise LupiError(
            f"{path}: {suffix or 'no suffix'} is not a format with columns; expected one of "
            f"{', '.join(SUFFIXES)}, optionally with .gz"
        )
    if suffix in EXCEL:
        rows = _excel_rows(path, columns, optional)
    else:
        rows = rows_in(_opened(path), str(path), columns, optional, dialect)
    n_characters, most = 0, min(MAX_CHARACTERS, largest_content(path.stat().st_size))
    for row in rows:
        n_characters += sum(len(cell) for cell in row.cells.values() if isinstance(cell, str))
        if n_characters > most:
            raise LupiError(f"{path} has more than {most:,} characters; use fewer rows")
        yield row


def rows_in(
    content: BinaryIO,
    name: str,
    columns: Sequence[str],
    optional: Sequence[str] | None = (),
    dialect: Dialect = PLAIN,
) -> Iterator[Row]:
    """Yield the rows of an open file, whose name tells the format; see `read_rows`."""
    suffix = suffix_of(name)
    with content:
        if suffix in (*JSON_LINES, *PARQUET) and dialect.separator is not None:
            raise LupiError(f"separator has no effect: {name} is not CSV; remove it")
        if suffix in PARQUET:
            for number, cells in parquet_rows(
                content, name, lambda names: find_columns(names, columns, optional, name)
            ):
                yield Row(number, cells)
            return
        lines = _read_lines(content, name, dialect.encoding)
        if suffix in JSON_LINES:
            yield from _json_rows(lines, name, columns, optional)
            return
        first = _first_lines(lines)
        separator = dialect.separator or find_separator(first, suffix)
        yield from csv_rows(chain(first, lines), name, columns, optional, separator)


def csv_rows(
    lines: Iterable[str],
    where: str,
    columns: Sequence[str],
    optional: Sequence[str] | None,
    separator: str,
) -> Iterator[Row]:
    """Yield the rows of CSV lines as they come; the first line names the columns."""
    lines = iter(lines)
    head = next((line for line in lines if line.strip()), None)
    if head is None:
        raise LupiError(f"{where} is empty")
    names = [name.strip() for name in next(csv.reader([head], delimiter=separator))]
    places = {name: names.index(name) for name in find_columns(names, columns, optional, where)}
    reader = csv.reader(lines, delimiter=separator)
    limit = csv.field_size_limit(MAX_CELL)
    number = 0
    try:
        for number, fields in enumerate((row for row in reader if row), start=1):
            if len(fields) != len(names):
                reason = f"it has {len(fields)} fields, the first line {len(names)}"
                there = {name: fields[p] for name, p in places.items() if p < len(fields)}
                yield Row(number, there, reason)
            else:
                yield Row(number, {name: fields[place] for name, place in places.items()})
    except csv.Error as error:
        raise LupiError(
            f"{where} can't be read as CSV after row {number}: {error}. Is a quotation mark "
            "not closed?"
        ) from None
    finally:
        csv.field_size_limit(limit)


def _json_rows(
    lines: Iterator[str], where: str, columns: Sequence[str], optional: Sequence[str] | None
) -> Iterator[Row]:
    filled = (line for line in lines if line.strip())
    first = [_read_object(line) for line in islice(filled, N_OBJECTS)]
    if not first:
        raise LupiError(f"{where} is empty")
    names = dict.fromkeys(name for values in first if isinstance(values, dict) for name in values)
    if names:
        find_columns(list(names), columns, (), where)
    for number, values in enumerate(chain(first, map(_read_object, filled)), start=1):
        if isinstance(values, str):
            yield Row(number, {}, values)
        elif optional is None:
            yield Row(number, values)
        else:
            yield Row(number, {name: values.get(name) for name in (*columns, *optional)})


def _read_object(line: str) -> dict[str, Any] | str:
    """Return the object of a line, or what is wrong with it."""
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        return f"it is not JSON: {error}"
    if not isinstance(values, dict):
        return f"expected one object per line, got {type(values).__name__}"
    return values


def _excel_rows(
    path: Path, columns: Sequence[str], optional: Sequence[str] | None
) -> Iterator[Row]:
    frame = read_frame(path)
    kept = find_columns([str(name) for name in frame.columns], columns, optional, str(path))
    values = frame[kept].astype(object).where(frame[kept].notna(), None)
    for number, cells in enumerate(values.to_numpy().tolist(), start=1):
        yield Row(number, dict(zip(kept, cells, strict=True)))


def find_columns(
    names: Sequence[str], columns: Sequence[str], optional: Sequence[str] | None, where: str
) -> list[str]:
    """Return the columns to keep, having checked that they are there, and once."""
    if optional is None:
        optional = [name for name in dict.fromkeys(names) if name and name not in columns]
    kept = [*columns, *(name for name in optional if name in names)]
    for name in kept:
        if name not in names:
            raise LupiError(f"{where}: {unknown_name('column', name, names)}")
        if list(names).count(name) > 1:
            raise LupiError(f"{where} has more than one column named {name!r}: rename them")
    return kept


def read_lines(path: Path, encoding: str) -> Iterator[str]:
    """Yield the lines of a text file, with their ends."""
    with _opened(path) as content:
        yield from _read_lines(content, str(path), encoding)


def _read_lines(content: BinaryIO, where: str, encoding: str) -> Iterator[str]:
    start = content.read(4)
    content.seek(0)
    if encoding == "utf-8" and start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise LupiError(f"{where} is UTF-16 text: set task.encoding=utf-16")
    number = 0
    decoded = io.TextIOWrapper(content, _without_mark(encoding), newline="")
    try:
        for number, line in enumerate(decoded, start=1):
            if "\0" in line:
                raise LupiError(f"{where}, line {number} contains a NUL byte: it is not text")
            yield line
    except UnicodeDecodeError as error:
        before = error.object[: error.start]  # what follows the lines read so far
        raise LupiError(
            f"{where} is not {encoding.upper()} text: byte 0x{error.object[error.start]:02x} in "
            f"line {number + 1 + before.count(10)}. Save it as UTF-8, or set the encoding: "
            "task.encoding=latin-1 (files from Windows: cp1252)"
        ) from None
    except UnicodeError as error:
        raise LupiError(f"{where} can't be read as {encoding}: {error}") from None
    finally:
        if not content.closed:
            decoded.detach()


def _first_lines(lines: Iterable[str]) -> list[str]:
    """Return about as many lines as the separator is found from; refuse an empty file."""
    found: list[str] = []
    n_characters = 0
    for line in lines:
        found.append(line)
        n_characters += len(line)
        if len(found) > 10 * N_SNIFFED or n_characters > N_CHARACTERS_SNIFFED:
            break
    return found


def _without_mark(encoding: str) -> str:
    """Return the encoding that leaves out the mark with which some programs begin UTF-8."""
    return "utf-8-sig" if encoding == "utf-8" else encoding


def _opened(path: Path) -> BinaryIO:
    try:
        if path.suffix.lower() == ".gz":
            return io.BytesIO(read_gzip(path))
        return open_regular(path)
    except FileNotFoundError:
        raise LupiError(f"{path} does not exist") from None
    except OSError as error:
        what = " as gzip" if path.suffix.lower() == ".gz" else ""
        raise LupiError(f"{path} can't be read{what}: {error}") from None
