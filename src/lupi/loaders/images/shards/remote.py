"""Files below a root that is a folder or a URL.

If a root contains `{}`, the file name is inserted there; otherwise it is appended after a slash.
URLs are opened by webdataset, and only if the user allows that root: a settings file or a run's
folder may name a server, or a shell command (`pipe:`).
"""

import re
from contextlib import closing
from pathlib import Path
from typing import Any

from lupi.errors import LupiError
from lupi.limits import open_regular
from lupi.permission import require_permission

PIECE = 2**20


def is_url(root: str) -> bool:
    """Return whether a root is a URL: two or more letters and a colon."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", root) is not None


def file_name(root: str, name: str) -> str:
    """Return the path or URL of a file below a root."""
    return root.replace("{}", name) if "{}" in root else f"{root.rstrip('/')}/{name}"


def open_file(root: str, name: str) -> Any:
    """Open a file below a root for reading; it may not be seekable."""
    path = file_name(root, name)
    if not is_url(root):
        return open_regular(Path(path))
    runs = "is a shell command" if root.startswith("pipe:") else "would be fetched"
    require_permission(root, "task.root", runs)
    try:
        from webdataset.gopen import gopen, gopen_schemes
    except ModuleNotFoundError:
        raise LupiError(f"task.root: {root} needs webdataset: pip install 'lupi[shards]'") from None
    known = {"file", *gopen_schemes} - {"__default__"}
    if root.partition(":")[0] not in known:
        listed = ", ".join(sorted(known))
        raise LupiError(f"task.root: {root} can't be opened; webdataset supports {listed}")
    return gopen(path)


def read_file(root: str, name: str, max_bytes: int) -> bytes:
    """Return the content of a file below a root."""
    try:
        with closing(open_file(root, name)) as file:
            data = read_at_most(file, max_bytes + 1)
    except OSError as error:
        raise LupiError(f"{file_name(root, name)} can't be read: {error}") from None
    if len(data) > max_bytes:
        raise LupiError(f"{file_name(root, name)} has more than {max_bytes:,} bytes")
    return data


def read_at_most(file: Any, n_bytes: int) -> bytes:
    """Read up to `n_bytes` bytes, without allocating more memory than was read."""
    pieces = []
    while n_bytes > 0 and (piece := file.read(min(n_bytes, PIECE))):
        pieces.append(piece)
        n_bytes -= len(piece)
    return b"".join(pieces)
