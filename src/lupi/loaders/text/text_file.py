"""Columns of a file with texts: CSV, TSV, JSON lines or Parquet, each perhaps gzipped.

Only the named columns are kept. Rows are numbered from 1, without the line of names.
"""

import codecs
import csv
import gzip
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from lupi.errors import LupiError
from lupi.loaders.tables.parquet import MAX_VALUES
from lupi.loaders.tables.reading import PARQUET, SEPARATORS
from lupi.settings import unknown_name
from lupi.unpack import read_gzip

CSV = (".csv", ".tsv", ".txt")
JSON_LINES = (".jsonl", ".ndjson", ".json")
SUFFIXES = (*CSV, *JSON_LINES, *PARQUET)
MAX_CELL = 2**24
"""Characters of one cell: beyond it, a quotation mark was probably never closed."""
N_LOOKED_AT = 100
"""Objects of a JSON lines file that may lack a column before it counts as missing."""
MAX_CHARACTERS = 2**31
"""Characters of all cells that are kept."""


class Row(NamedTuple):
    """One row of a file."""

    number: int
    cells: dict[str, Any]
    """By column; empty if the row is bad."""
    bad: str | None = None
    """What is wrong with the row as such."""


def is_text_file(path: Path) -> bool:
    """Tell a file that this module reads by its suffix."""
    return _suffix(path) in SUFFIXES


def read_rows(
    path: Path,
    columns: Sequence[str],
    optional: Sequence[str] = (),
    separator: str | None = None,
    encoding: str = "utf-8",
) -> Iterator[Row]:
    """Yield the rows of a file.

    Args:
        path: of the file; its suffix tells the format.
        columns: to keep; each has to be there.
        optional: columns to keep where the file has them.
        separator: of a CSV's columns; None: a tab in .tsv, else found in the first line.
        encoding: of the text.
    """
    suffix = _suffix(path)
    if suffix not in SUFFIXES:
        raise LupiError(
            f"{path}: {suffix or 'no suffix'} is not a format of texts; expected one of "
            f"{', '.join(SUFFIXES)}, optionally with .gz"
        )
    n_characters = 0
    for row in _READERS[suffix](path, columns, optional, separator, encoding):
        n_characters += sum(len(cell) for cell in row.cells.values() if isinstance(cell, str))
        if n_characters > MAX_CHARACTERS:
            raise LupiError(f"{path} has more than {MAX_CHARACTERS:,} characters; use fewer rows")
        yield row


def read_csv_rows(
    lines: Iterable[str],
    columns: Sequence[str],
    optional: Sequence[str],
    separator: str | None,
    where: str,
) -> Iterator[Row]:
    """Yield the rows of CSV lines as they come."""
    lines = iter(lines)
    head = next((line for line in lines if line.strip()), None)
    if head is None:
        raise LupiError(f"{where} is empty")
    separator = separator or max(SEPARATORS, key=head.count)
    names = [name.strip() for name in next(csv.reader([head], delimiter=separator))]
    places = {name: names.index(name) for name in find_columns(names, columns, optional, where)}
    reader = csv.reader(lines, delimiter=separator)
    limit = csv.field_size_limit(MAX_CELL)
    number = 0
    try:
        for number, fields in enumerate((row for row in reader if row), start=1):
            if len(fields) != len(names):
                reason = f"it has {len(fields)} fields, the first line {len(names)}"
                yield Row(number, {}, reason)
            else:
                yield Row(number, {name: fields[place] for name, place in places.items()})
    except csv.Error as error:
        raise LupiError(
            f"{where} can't be read as CSV after row {number}: {error}. Is a quotation mark "
            "not closed?"
        ) from None
    finally:
        csv.field_size_limit(limit)


def _read_csv(
    path: Path,
    columns: Sequence[str],
    optional: Sequence[str],
    separator: str | None,
    encoding: str,
) -> Iterator[Row]:
    if _suffix(path) == ".tsv":
        separator = separator or "\t"
    lines = _read_lines(path, encoding)
    yield from read_csv_rows(lines, columns, optional, separator, str(path))


def _read_json_lines(
    path: Path,
    columns: Sequence[str],
    optional: Sequence[str],
    separator: str | None,
    encoding: str,
) -> Iterator[Row]:
    _refuse_separator(path, separator)
    lines = (line for line in _read_lines(path, encoding) if line.strip())
    first = [_read_object(line) for line in islice(lines, N_LOOKED_AT)]
    if not first:
        raise LupiError(f"{path} is empty")
    names = dict.fromkeys(name for values in first if isinstance(values, dict) for name in values)
    if names:
        find_columns(list(names), columns, (), str(path))
    for number, values in enumerate(chain(first, map(_read_object, lines)), start=1):
        if isinstance(values, str):
            yield Row(number, {}, values)
        else:
            yield Row(number, {name: values.get(name) for name in (*columns, *optional)})


def _read_object(line: str) -> dict[str, Any] | str:
    """Return the object in a line; a string says what is wrong with it."""
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        return f"it is not JSON: {error}"
    if not isinstance(values, dict):
        return f"expected one object per line, got {type(values).__name__}"
    return values


def _read_parquet(
    path: Path,
    columns: Sequence[str],
    optional: Sequence[str],
    separator: str | None,
    encoding: str,
) -> Iterator[Row]:
    _refuse_separator(path, separator)
    from pyarrow.parquet import ParquetFile

    with _opened(path) as content:
        try:
            file = ParquetFile(content)
            names, n_rows = list(file.schema_arrow.names), file.metadata.num_rows
        except Exception as error:  # a hostile file may raise anything inside pyarrow
            raise LupiError(f"{path} can't be read as Parquet: {error}") from None
        kept = find_columns(names, columns, optional, str(path))
        if n_rows * len(kept) > MAX_VALUES:
            raise LupiError(f"{path} declares {n_rows:,} rows; use fewer rows")
        batches = file.iter_batches(256, columns=kept)
        number = 0
        while True:
            try:
                batch = next(batches, None)
                rows = [] if batch is None else batch.to_pylist()
            except Exception as error:
                raise LupiError(f"{path} can't be read as Parquet: {error}") from None
            if batch is None:
                return
            for cells in rows:
                number += 1
                yield Row(number, cells)


def _read_lines(path: Path, encoding: str) -> Iterator[str]:
    with _opened(path) as content:
        start = content.read(4)
        content.seek(0)
        if encoding == "utf-8":
            encoding = "utf-8-sig"
            if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                raise LupiError(f"{path} is UTF-16 text: set task.encoding to utf-16")
        number = 0
        try:
            with io.TextIOWrapper(content, encoding, newline="") as lines:
                for number, line in enumerate(lines, start=1):
                    if "\0" in line:
                        raise LupiError(
                            f"{path}, line {number} contains a NUL byte: it is not text"
                        )
                    yield line
        except LookupError:
            raise LupiError(f"task.encoding: unknown encoding {encoding!r}") from None
        except UnicodeDecodeError as error:
            before = error.object[: error.start]  # what follows the lines read so far
            raise LupiError(
                f"{path} is not {encoding.removesuffix('-sig')} text: byte "
                f"0x{error.object[error.start]:02x} in line {number + 1 + before.count(10)}. Save "
                "it as UTF-8, or set task.encoding; files from Windows often are cp1252"
            ) from None
        except UnicodeError as error:
            raise LupiError(f"{path} can't be read as {encoding}: {error}") from None


def _opened(path: Path) -> BinaryIO:
    try:
        if path.suffix.lower() == ".gz":
            return io.BytesIO(read_gzip(path))
        return path.open("rb")
    except FileNotFoundError:
        raise LupiError(f"{path} does not exist") from None
    except (OSError, gzip.BadGzipFile) as error:
        raise LupiError(f"{path} can't be read: {error}") from None


def find_columns(
    names: Sequence[str], columns: Sequence[str], optional: Sequence[str], where: str
) -> list[str]:
    """Return the columns to keep, having checked that they are there, and once."""
    kept = [*columns, *(name for name in optional if name in names)]
    for name in kept:
        if name not in names:
            raise LupiError(f"{where}: {unknown_name('column', name, names)}")
        if list(names).count(name) > 1:
            raise LupiError(f"{where} has more than one column named {name!r}: rename them")
    return kept


def _refuse_separator(path: Path, separator: str | None) -> None:
    if separator is not None:
        raise LupiError(f"separator has no effect: {path} is not CSV; remove it")


def _suffix(path: Path) -> str:
    """Return the suffix that tells the format, without .gz."""
    plain = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    return plain.suffix.lower()


_READERS: dict[str, Callable[..., Iterator[Row]]] = {
    **dict.fromkeys(CSV, _read_csv),
    **dict.fromkeys(JSON_LINES, _read_json_lines),
    **dict.fromkeys(PARQUET, _read_parquet),
}
