"""Store a data frame or standard input as a file, which workers and a resumed comparison read."""

import hashlib
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lupi.errors import LupiError
from lupi.files import write_whole

if TYPE_CHECKING:
    import pandas as pd

FOLDER = "data"
STARTS = {
    b"PAR1": ".parquet",
    b"PK\x03\x04": ".xlsx",
    b"\x1f\x8b": ".csv.gz",
    b"{": ".jsonl",
}
"""First bytes of each format; all other files are CSV."""


def frame_identity(frame: "pd.DataFrame") -> str:
    """Return 8 hex digits that depend on columns, their types and their values."""
    import pandas as pd

    _check(frame)
    digest = hashlib.sha256()
    for name in frame.columns:
        digest.update(f"{name}\0{frame[name].dtype}\0".encode())
    hashable = frame.copy(deep=False)
    for key, column in frame.items():
        if column.dtype == object and any(isinstance(value, list | dict) for value in column):
            hashable[key] = column.map(str)
    digest.update(pd.util.hash_pandas_object(hashable, index=False).to_numpy().tobytes())
    return digest.hexdigest()[:8]


def store_frame(frame: "pd.DataFrame", folder: Path) -> Path:
    """Write a frame as Parquet, which keeps types, unless the file exists; return its path."""
    import pandas as pd

    path = folder / FOLDER / f"{frame_identity(frame)}.parquet"
    if path.exists():
        return path
    named = frame.set_axis(pd.Index([str(name) for name in frame.columns]), axis="columns")

    def write(temporary: Path) -> None:
        named.reset_index(drop=True).to_parquet(temporary, engine="pyarrow", index=False)

    write_whole(path, write)
    return path


def name_bytes(content: bytes) -> str:
    """Return 8 hex digits that depend on the content of a file."""
    return hashlib.sha256(content).hexdigest()[:8]


def store_bytes(content: bytes, folder: Path) -> Path:
    """Write content to a file with the suffix of its format; return its path."""
    suffix = next((name for start, name in STARTS.items() if content.startswith(start)), ".csv")
    path = folder / FOLDER / f"{name_bytes(content)}{suffix}"
    if not path.exists():
        write_whole(path, partial(_write, content))
    return path


def _write(content: bytes, path: Path) -> None:
    path.write_bytes(content)


def _check(frame: "pd.DataFrame") -> None:
    """Raise an error for a frame that can't be stored: duplicate names or mixed types."""
    twice = [name for name, n in Counter(str(name) for name in frame.columns).items() if n > 1]
    if twice:
        raise LupiError(f"the data frame has more than one column named {twice[0]!r}: rename them")
    for name in frame.columns:
        if frame[name].dtype != object:
            continue
        kinds = {type(value).__name__ for value in frame[name].dropna()}
        if len(kinds) > 1:
            raise LupiError(
                f"column {name!r} of the data frame mixes {', '.join(sorted(kinds))}; convert it "
                f"to one type, as with frame[{name!r}].astype(str)"
            )
