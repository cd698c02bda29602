"""Write files so that a kill leaves them complete or absent, and notice what changed since.

Only the last line of appended rows may be incomplete; readers skip it with a warning. Results and
rows carry a checksum: of the document, or of a row and all rows before it.
"""

import contextlib
import hashlib
import json
import math
import os
import platform
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from lupi.errors import LupiError
from lupi.limits import open_regular, read_regular

MAX_RECORD = 32 * 2**20
"""Bytes of a record; the plan of 10,000 runs takes about 2 MB."""
CHECKSUM = "checksum"


class DamagedRecordError(LupiError):
    """A record is incomplete, was changed, or belongs to another run."""


def write_whole(path: Path, write: Callable[[Path], Any]) -> None:
    """Call `write` with a temporary path, then rename that file to `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(path)
    temporary = temporary_path(path)
    try:
        write(temporary)
        force_to_disk(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def temporary_path(path: Path) -> Path:
    """Return a path beside `path` that is unique, even on storage that other machines write to."""
    return path.with_name(f".{path.name}.{platform.node()}.{os.getpid()}.tmp")


def remove_leftovers(path: Path) -> None:
    """Remove the temporary files or folders of `path` of processes that were killed."""
    start = f".{path.name}.{platform.node()}."
    with contextlib.suppress(OSError):
        for left in path.parent.iterdir():
            pid = left.name.removeprefix(start).removesuffix(".tmp")
            if left.name == f"{start}{pid}.tmp" and pid.isdecimal() and not is_alive(int(pid)):
                shutil.rmtree(left) if left.is_dir() else left.unlink()


def is_alive(pid: int) -> bool:
    """Return whether a process of this machine exists."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # of another user, or a system without such signals
        return True
    return True


@contextlib.contextmanager
def locked(folder: Path, timeout: float = -1) -> Iterator[None]:
    """Hold the lock of a folder; raise filelock's Timeout after `timeout` seconds, if given."""
    require_utf8(folder)
    path = folder / ".lock"
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(path.lstat().st_mode):  # a link to a pipe would be waited for
            raise LupiError(f"{path} is not a regular file, so it is not lupi's lock; delete it")
    with FileLock(path, timeout=timeout):
        yield


def require_utf8(folder: Path) -> None:
    """Refuse a folder whose name is not UTF-8, in which weights can't be written."""
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        raise LupiError(f"--out: {folder} is not valid UTF-8; choose another name") from None


def is_locked(folder: Path) -> bool:
    """Return whether another process holds the lock of a folder."""
    if not folder.is_dir():
        return False
    try:
        with locked(folder, timeout=0):
            return False
    except Timeout:
        return True


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Write a document with sorted keys, so that equal results are equal files."""
    text = json.dumps(document, indent=1, sort_keys=True, allow_nan=False) + "\n"
    write_text(path, text)


def write_sealed(path: Path, document: Mapping[str, Any]) -> None:
    """Write a document with its checksum."""
    write_json(path, {**document, CHECKSUM: _checksum(document)})


def write_text(path: Path, text: str) -> None:
    """Write text to a file; what UTF-8 can't encode, such as file names in bytes, is escaped."""
    data = text.encode("utf-8", "backslashreplace")
    write_whole(path, lambda temporary: temporary.write_bytes(data))


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON document that `write_json` or `write_sealed` wrote."""
    try:
        text = read_regular(path, MAX_RECORD).decode("utf-8")
        document = json.loads(text, parse_float=_finite, parse_constant=_finite)
    except (OSError, ValueError, RecursionError) as error:
        raise DamagedRecordError(f"{path} can't be read as a record: {error}") from None
    if not isinstance(document, dict):
        raise DamagedRecordError(f"{path} can't be read as a record: it holds no JSON object")
    expected = document.pop(CHECKSUM, None)
    if expected is not None and expected != _checksum(document):
        raise DamagedRecordError(f"{path} was changed or is damaged: its checksum differs")
    return document


def _finite(text: str) -> float:
    """Return a number of a record; `write_json` writes no others."""
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text} is not a finite number")
    return number


def _checksum(document: Mapping[str, Any], before: str = "") -> str:
    document = json.loads(json.dumps(document))  # keys as texts, as they will be read
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256((before + text).encode()).hexdigest()[:16]


def append_row(path: Path, row: Mapping[str, Any]) -> None:
    """Append one line of JSON."""
    before = _last_checksum(path)
    with path.open("a", encoding="utf-8") as file:
        file.write(_line(row, before))


def _line(row: Mapping[str, Any], before: str) -> str:
    return json.dumps({**row, CHECKSUM: _checksum(row, before)}, sort_keys=True) + "\n"


def _last_checksum(path: Path) -> str:
    """Return the checksum of the last row of a file; an empty string if there is none."""
    try:
        with path.open("rb") as file:
            n_bytes = file.seek(0, os.SEEK_END)
            file.seek(max(0, n_bytes - 2**20))  # no row is longer
            lines = file.read().splitlines()
        return str(json.loads(lines[-1])[CHECKSUM])
    except (FileNotFoundError, IndexError, KeyError, ValueError, TypeError):
        return ""


def force_to_disk(path: Path) -> None:
    """Flush a file to disk, so that it survives a power failure."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def read_rows(path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the rows of a `.jsonl` file, and warnings about lines that were skipped.

    A row that does not follow the one before it, because rows between them are lost or one of the
    two was changed, is skipped, too.
    """
    rows: list[dict[str, Any]] = []
    warnings: list[str] = []
    if not path.exists():
        return rows, warnings
    try:
        with open_regular(path) as file:
            lines = file.read(MAX_ROWS).splitlines()
    except OSError as error:
        return rows, [f"{path} can't be read: {error}"]
    before = ""
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict) or any(
            not isinstance(row.get(key), dict | None) for key in _PARTS
        ):
            warnings.append(f"{path}: line {number} is incomplete and was skipped")
            continue
        found = row.pop(CHECKSUM, None)
        if (found is not None or before) and found != _checksum(row, before):
            warnings.append(f"{path}: line {number} was changed, or lines before it are lost")
        else:
            rows.append(row)
        before = found if isinstance(found, str) else ""
    return rows, warnings


MAX_ROWS = 256 * 2**20
"""Bytes of a file of rows that are read; an epoch takes about 500."""
_PARTS = ("train", "val", "sites")
"""Entries of a row that are numbers by name, or None."""


def rewrite_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Replace the content of a `.jsonl` file by these rows."""
    lines: list[str] = []
    before = ""
    for row in rows:
        lines.append(_line(row, before))
        before = _checksum(row, before)
    write_text(path, "".join(lines))


def set_run_aside(folder: Path, reason: str) -> None:
    """Move the files of a damaged run to `damaged/` beside its folder."""
    files = [path for path in folder.iterdir() if path.name != ".lock"]
    set_aside(files, folder.parent, folder.name, reason)


def set_aside(files: Iterable[Path], records: Path, name: str, reason: str) -> None:
    """Move damaged files to `records/damaged/name-1` (or -2, …), with the reason."""
    n = 1
    while (kept := records / "damaged" / f"{name}-{n}").exists():
        n += 1
    kept.mkdir(parents=True)
    for path in files:
        path.rename(kept / path.name)
    write_text(kept / "damage.txt", f"{reason}\n")


def read_set_aside(folder: Path) -> dict[Path, str]:
    """Return the damaged runs that are kept in the folder of a comparison, with reasons."""
    found = {}
    for path in sorted(folder.glob("damaged/*/damage.txt")):
        with contextlib.suppress(OSError):
            found[path.parent] = read_regular(path, 2**16).decode("utf-8", "replace").strip()
    return found
