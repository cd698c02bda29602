"""Write files so that a kill leaves them complete or absent.

Only the last line of appended rows may be incomplete; readers skip it with a warning.
"""

import json
import os
import platform
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from lupi.errors import LupiError


def write_whole(path: Path, write: Callable[[Path], Any]) -> None:
    """Call `write` with a temporary path, then rename that file to `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # The name is unique, even on storage that other machines write to.
    temporary = path.with_name(f".{path.name}.{platform.node()}.{os.getpid()}.tmp")
    try:
        write(temporary)
        force_to_disk(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Write a document with sorted keys, so that equal results are equal files."""
    text = json.dumps(document, indent=1, sort_keys=True, allow_nan=False) + "\n"
    write_text(path, text)


def write_text(path: Path, text: str) -> None:
    """Write text to a file."""
    write_whole(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


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
    """Flush a file to disk, so that it survives a power failure."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def read_rows(path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the rows of a `.jsonl` file, and warnings about incomplete lines."""
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
            warnings.append(f"{path}: line {number} is incomplete and was skipped")
    return rows, warnings


_PARTS = ("train", "val", "sites")
"""Entries of a row that are numbers by name, or None."""


def rewrite_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Replace the content of a `.jsonl` file by these rows."""
    text = "".join(json.dumps(row, sort_keys=True) + "\n" for row in rows)
    write_text(path, text)
