"""Rows of Parquet files: the columns that are wanted, all rows or some drawn at random."""

import io
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from lupi.errors import LupiError
from lupi.limits import ALWAYS_READ, check_regular, largest_content
from lupi.subsets import some_rows

if TYPE_CHECKING:
    import pandas as pd

MAX_VALUES = 200_000_000
"""Maximum number of values of a file, which may declare a billion rows in a few bytes."""


def parquet_columns(path: Path) -> list[str]:
    """Return the names of the columns, for which no row is read."""
    return _columns(path, _opened(path))


def read_parquet(
    path: Path, columns: Collection[str] | None = None, max_rows: int | None = None
) -> "pd.DataFrame":
    """Return a table.

    Args:
        path: of the file.
        columns: those to read, if they are there; None: all.
        max_rows: as many rows, drawn at random, if there are more. Memory is needed for these and
            for a part of the file.
    """
    file = _opened(path)
    wanted = [name for name in _columns(path, file) if columns is None or name in columns]
    n_rows = file.metadata.num_rows
    n_read = n_rows if max_rows is None else min(n_rows, max_rows)
    _refuse_growth(path, path.stat().st_size, wanted, n_read, f"table {path}")
    if n_read * len(wanted) > MAX_VALUES:
        raise LupiError(
            f"table {path} says that it has {n_rows:,} rows of {len(wanted)} columns; at most "
            f"{MAX_VALUES:,} values are read: name fewer columns (task.features, task.ignore), or "
            "draw some of the rows (task.max_rows)"
        )
    try:
        table = file.read(columns=wanted) if n_read == n_rows else _some(file, wanted, n_read)
        table.validate(full=True)  # texts that are not UTF-8 would fail only when they are used
        frame: pd.DataFrame = table.to_pandas()
    except Exception as error:  # a hostile file may raise anything inside pyarrow
        raise LupiError(f"table {path} can't be read as Parquet: {error}") from None
    if n_read < n_rows:
        frame = frame.reset_index(drop=True)
        frame.attrs["n_not_drawn"] = n_rows - n_read
    return frame


def _some(file: Any, columns: list[str], n: int) -> Any:
    """Read rows drawn at random, in the order of the file, a part of which is in memory."""
    import pyarrow as pa

    rows, start, found = some_rows(file.metadata.num_rows, n), 0, []
    for batch in file.iter_batches(columns=columns):
        here = rows[np.searchsorted(rows, start) : np.searchsorted(rows, start + len(batch))]
        found.append(batch.take(pa.array(here - start)))
        start += len(batch)
    return pa.Table.from_batches(found)


def _opened(path: Path) -> Any:
    from pyarrow.parquet import ParquetFile

    try:
        check_regular(path)
        return ParquetFile(path)
    except Exception as error:  # a hostile file may raise anything inside pyarrow
        raise LupiError(f"table {path} can't be read as Parquet: {error}") from None


def _refuse_growth(
    source: Path | BinaryIO, n_bytes: int, columns: list[str], n_rows: int, where: str
) -> None:
    """Refuse a small file that would expand to more than is read from one of its size.

    A column may store one value for all rows, and so may a text of megabytes.
    """
    most = largest_content(n_bytes)
    expanded = 8 * n_rows * len(columns)
    if expanded <= most and n_bytes < ALWAYS_READ // 4:
        try:
            expanded += _text_bytes(source, columns, most)
        except Exception as error:  # a hostile file may raise anything inside pyarrow
            raise LupiError(f"{where} can't be read as Parquet: {error}") from None
    if expanded > most:
        raise LupiError(
            f"{where} has {n_rows:,} rows of {len(columns)} columns, which would expand to "
            f"{expanded:,} bytes; at most {most:,} are read from a file of its size: save it "
            "without compression, or draw some of the rows (task.max_rows)"
        )


def _text_bytes(source: Path | BinaryIO, columns: list[str], most: int) -> int:
    """Return the bytes of all texts without making them; stop where there are more than `most`."""
    import pyarrow as pa
    from pyarrow import compute
    from pyarrow.parquet import ParquetFile

    schema = ParquetFile(source).schema_arrow
    kinds = {name: schema.field(name).type for name in columns}
    values = {n: k.value_type if pa.types.is_dictionary(k) else k for n, k in kinds.items()}
    texts = [n for n, k in values.items() if pa.types.is_string(k) or pa.types.is_binary(k)]
    n_bytes = 0
    if texts:
        file = ParquetFile(source, read_dictionary=texts)
        for batch in file.iter_batches(columns=texts):
            for column in batch.columns:
                lengths = compute.binary_length(column.dictionary).take(column.indices)
                n_bytes += compute.sum(lengths).as_py() or 0
            if n_bytes > most:
                break
    return n_bytes


def _columns(path: Path, file: Any) -> list[str]:
    """Return the names of the columns; without pandas' index columns."""
    try:
        index = (file.schema_arrow.pandas_metadata or {}).get("index_columns", [])
        names: list[str] = file.schema_arrow.names
        return [name for name in names if name not in index]
    except Exception as error:  # of a hostile file
        raise LupiError(f"table {path} can't be read as Parquet: {error}") from None


def parquet_rows(
    content: BinaryIO, where: str, keep: Callable[[list[str]], list[str]]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rows of an open file with their numbers, from 1; `keep` chooses the columns."""
    from pyarrow.parquet import ParquetFile

    try:
        file = ParquetFile(content)
        names, n_rows = list(file.schema_arrow.names), file.metadata.num_rows
    except Exception as error:  # a hostile file may raise anything inside pyarrow
        raise LupiError(f"{where} can't be read as Parquet: {error}") from None
    kept = keep(names)
    _refuse_growth(content, content.seek(0, io.SEEK_END), kept, n_rows, where)
    if n_rows * len(kept) > MAX_VALUES:
        raise LupiError(f"{where} declares {n_rows:,} rows; use fewer rows")
    batches = file.iter_batches(256, columns=kept)
    number = 0
    while True:
        try:
            batch = next(batches, None)
            rows = [] if batch is None else batch.to_pylist()
        except Exception as error:
            raise LupiError(f"{where} can't be read as Parquet: {error}") from None
        if batch is None:
            return
        for cells in rows:
            number += 1
            yield number, cells
