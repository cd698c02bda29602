"""Files that outlive a kill: whole or absent, but for the last line of rows that are appended.

Readers skip such a line, with a warning, when it is torn.
"""

import json
import os
import platform
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from lupi.errors import LupiError


def write_whole(path: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a temporary file, then rename it to `path`: whole or absent."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Of this process alone, on storage that other machines write to as well.
    temporary = path.with_name(f".{path.name}.{platform.node()}.{os.getpid()}.tmp")
    try:
        write(temporary)
        force_to_disk(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Write `document` whole, with sorted keys, so that equal results are equal files."""
    text = json.dumps(document, indent=1, sort_keys=True, allow_nan=False) + "\n"
    write_text(path, text)


def write_text(path: Path, text: str) -> None:
    """Write `text` whole."""

    def write(temporary: Path) -> None:
        temporary.write_text(text, encoding="utf-8")

    write_whole(path, write)


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON document that `write_json` wrote."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise LupiError(f"{path} can't be read as a record: {error}") from None
    if not isinstance(document, dict):
        raise LupiError(f"{path} can't be read as a record: it holds no JSON object")
    return document


def append_row(path: Path, row: Mapping[str, Any]) -> None:
    """Append one line of JSON."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row, sort_keys=True) + "\n")


def force_to_disk(path: Path) -> None:
    """Let what was appended to a file outlive a power failure, too."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def read_rows(path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the rows of a `.jsonl` file and warnings about lines that are not whole."""
    rows: list[dict[str, Any]] = []
    warnings: list[str] = []
    if not path.exists():
        return rows, warnings
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if isinstance(row, dict) and all(isinstance(row.get(k), dict | None) for k in _PARTS):
            rows.append(row)
        else:
            warnings.append(f"{path}: line {number} is torn and was skipped")
    return rows, warnings


_PARTS = ("train", "val", "sites")
"""Of a row: numbers by name, or nothing."""


def rewrite_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Replace a `.jsonl` file by these rows."""
    text = "".join(json.dumps(row, sort_keys=True) + "\n" for row in rows)
    write_text(path, text)
