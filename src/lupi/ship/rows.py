"""Convert rows of a table to x: CSV line by line, Parquet or Excel.

The values of a CSV are read as text and converted column by column as in the training table, so
that the result for a row does not depend on other rows.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lupi.errors import LupiError
from lupi.loaders.files import Dialect, is_csv, read_frame, read_lines, split_header
from lupi.loaders.tables.encoder import Column, TableEncoder
from lupi.settings import format_value, unknown_name
from lupi.ship.description import Encoded

if TYPE_CHECKING:
    import pandas as pd

MOST_KNOWN = 1000
"""Texts of a column to remember for the next batch; with more, it is numbers that seldom repeat."""


class RowReader:
    """Reads files of rows for a student, `batch_size` rows at a time."""

    def __init__(self, encoder: TableEncoder, how: Dialect, batch_size: int) -> None:
        self._encoder, self._how, self._batch_size = encoder, how, batch_size
        self.ignored: dict[str, None] = {}
        """Columns of the files that the student does not use, in order."""

    def read(self, path: Path) -> Iterator[Encoded]:
        """Read a file in any format that tables have."""
        if is_csv(path):
            yield from self.read_csv(read_lines(path, self._how.encoding), str(path))
        else:
            how = self._how.model_copy(update={"separator": None})
            yield from self._read_frame(read_frame(path, how), str(path))

    def read_csv(self, lines: Iterable[str], where: str) -> Iterator[Encoded]:
        """Read lines of a CSV as they come."""
        try:
            yield from self._read_csv(lines, where)
        except UnicodeError:
            what = self._how.encoding.upper()
            raise LupiError(f"{where} is not {what} text, unlike the training table") from None
        except csv.Error as error:
            raise LupiError(f"{where} can't be read as CSV: {error}") from None

    def _read_csv(self, lines: Iterable[str], where: str) -> Iterator[Encoded]:
        lines = iter(lines)
        head = next((line for line in lines if line.strip()), None)
        if head is None:
            raise LupiError(f"{where} is empty; expected rows of a table")
        own = [column.name for column in self._encoder.columns]
        separator, names = split_header(head, own, self._how.header, self._how.separator)
        if not self._how.header:
            lines = chain([head], lines)
        self._look_at(names, where)
        places = [names.index(column.name) for column in self._encoder.columns]
        rows = (row for row in csv.reader(lines, delimiter=separator, skipinitialspace=True) if row)
        cells = [CellEncoder(column, self._how.decimal) for column in self._encoder.columns]
        n_read = 0
        while chunk := list(islice(rows, self._batch_size)):
            bad: dict[int, str] = {}
            for i, row in enumerate(chunk):
                if len(row) != len(names):
                    bad[i] = f"has {len(row)} fields, but the first line has {len(names)}"
                    chunk[i] = [""] * len(names)
            columns = list(zip(*chunk, strict=True))
            encoded = [own.encode(columns[p]) for own, p in zip(cells, places, strict=True)]
            for _, reasons in encoded:
                bad = reasons | bad
            x = np.concatenate([vectors for vectors, _ in encoded], axis=1)
            good = [i for i in range(len(chunk)) if i not in bad]
            yield _numbered(n_read, good, x[good] if bad else x, bad)
            n_read += len(chunk)

    def _read_frame(self, frame: "pd.DataFrame", where: str) -> Iterator[Encoded]:
        self._look_at([str(name) for name in frame.columns], where)
        for start in range(0, len(frame), self._batch_size):
            some = frame.iloc[start : start + self._batch_size]
            bad = find_bad(some, self._encoder)
            good = [i for i in range(len(some)) if i not in bad]
            yield _numbered(start, good, self._encoder.transform(some.iloc[good]), bad)

    def _look_at(self, names: Sequence[str], where: str) -> None:
        own = [column.name for column in self._encoder.columns]
        for name in own:
            reason = None
            if name not in names:
                reason = unknown_name("column", name, names)
            elif f"{name}.1" in names and f"{name}.1" not in own:
                reason = f"more than one column is named {name!r}"
            if reason is not None:
                raise LupiError(f"{where}: {reason}. The student predicts from {', '.join(own)}")
        self.ignored |= dict.fromkeys(name for name in names if name not in own)


class CellEncoder:
    """Encodes the text of one column's cells as in the training table, each distinct text once."""

    def __init__(self, column: Column, decimal: str) -> None:
        self._column, self._decimal = column, decimal
        self._forget()

    def _forget(self) -> None:
        self._places: dict[str, int] = {}
        self._vectors = np.empty((0, self._column.width), dtype=np.float32)
        self._bad: dict[int, str] = {}

    def encode(self, cells: Sequence[str]) -> tuple[NDArray[np.float32], dict[int, str]]:
        """Return the vectors of cells (N, width), and the error of each invalid one by position."""
        if len(self._places) > MOST_KNOWN:
            self._forget()
        if new := list(set(cells).difference(self._places)):
            self._learn(new)
        places = np.fromiter(map(self._places.__getitem__, cells), np.intp, len(cells))
        is_bad = np.isin(places, list(self._bad)) if self._bad else ()
        bad = {int(i): self._bad[int(places[i])] for i in np.flatnonzero(is_bad)}
        return self._vectors[places], bad

    def _learn(self, new: list[str]) -> None:
        frame = self._understood(new)
        bad = find_bad(frame, TableEncoder((self._column,)))
        if bad:
            frame.iloc[list(bad)] = None
        first = len(self._places)
        vectors = self._column.transform(frame[self._column.name]).astype(np.float32)
        self._vectors = np.concatenate([self._vectors, vectors])
        self._bad |= {first + i: reason for i, reason in bad.items()}
        self._places |= {text: first + i for i, text in enumerate(new)}

    def _understood(self, texts: list[str]) -> "pd.DataFrame":
        """Return texts as a column, with missing values and the categories of training."""
        import pandas as pd

        content = io.StringIO()
        csv.writer(content).writerows([text] for text in texts)
        content.seek(0)
        name = self._column.name
        frame = pd.read_csv(
            content, header=None, names=[name], dtype=object, skip_blank_lines=False
        )
        known = frozenset(self._column.categories)

        def understood(text: str) -> str:
            if self._column.kind == "category":
                return _canonical(text, known)
            return text.replace(self._decimal, ".") if self._column.kind == "number" else text

        frame[name] = [text if pd.isna(text) else understood(text) for text in frame[name]]
        return frame


def _numbered(start: int, good: list[int], x: NDArray[np.float32], bad: dict[int, str]) -> Encoded:
    """Return a batch that begins after `start` rows of a file."""
    named = sorted((start + i + 1, reason) for i, reason in bad.items())
    return Encoded([start + i + 1 for i in good], x, named)


def encode_rows(frame: Any, encoder: TableEncoder) -> NDArray[np.float32]:
    """Return x of the rows of a DataFrame, (B, width); an invalid row is an error."""
    import pandas as pd

    if not isinstance(frame, pd.DataFrame) or not len(frame):
        raise LupiError(
            f"this student predicts rows: expected a non-empty DataFrame, got {frame!r}"
        )
    x = encoder.transform(frame)
    for row, reason in sorted(find_bad(frame, encoder).items()):
        raise LupiError(f"row {row + 1}: {reason}")
    return x


def find_bad(frame: "pd.DataFrame", encoder: TableEncoder) -> dict[int, str]:
    """Return the error of each invalid row, by position."""
    import pandas as pd

    bad: dict[int, str] = {}
    for column in encoder.columns:
        values = frame[column.name]
        if column.kind == "number":
            understood = pd.to_numeric(values, errors="coerce").notna()
        elif column.kind == "date":
            dates = pd.to_datetime(values, errors="coerce", utc=True, format="ISO8601")
            understood = dates.notna()
        else:
            continue
        for place in np.flatnonzero((~understood & values.notna()).to_numpy()):
            bad[int(place)] = _misunderstood(column, values.iloc[place])
    return bad


def _misunderstood(column: Column, value: Any) -> str:
    expected = {"number": "a number", "date": "a date such as 2024-05-26"}[column.kind]
    return (
        f"{column.name} is {format_value(value)}, expected {expected}, or nothing if it is missing"
    )


def _canonical(text: str, known: frozenset[str]) -> str:
    """Return a category as written in training: `true` and `01` may be True and 1 there."""
    if text in known:
        return text
    if text.lower() in ("true", "false"):
        return text.capitalize()
    try:
        number = float(text)
    except ValueError:
        return text
    return str(int(number)) if number.is_integer() else str(number)
