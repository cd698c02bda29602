"""Limits for decompression: a file may expand to 256 MiB, or to 100 times its size.

A file that would expand to more is refused before it is decompressed. Sizes that an archive's own
directory states are checked, too.
"""

import gzip
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from lupi.errors import LupiError
from lupi.limits import check_regular, largest_content, open_regular

METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Compression methods of members; others can't be decompressed with a limit."""


def read_gzip(path: Path) -> bytes:
    """Return the content of a gzip file; an OSError if that can't be had."""
    most = largest_content(check_regular(path))
    try:
        with open_regular(path) as packed, gzip.open(packed) as file:
            content = file.read(most + 1)
    except (EOFError, zlib.error) as error:
        raise OSError(f"it is damaged: {error}") from None
    if len(content) > most:
        raise OSError(f"more than {most:,} bytes would come out of it: unpack it yourself")
    return content


def read_member(file: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Return the content of a member of a zip; an OSError if that can't be had."""
    if member.compress_type not in METHODS:
        raise OSError("it is packed in an unusual way; zip it by deflate, as most programs do")
    try:
        with file.open(member) as content:
            return content.read(member.file_size)  # and no more, whatever follows
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, zlib.error) as error:
        raise OSError(str(error)) from None  # damaged, or encrypted


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of an .npz file by name, or the one of an .npy as `features`.

    Loading runs no code: arrays of Python objects are refused.
    """
    try:
        check_regular(path)
        if zipfile.is_zipfile(path):
            refuse_growth(path)
            with np.load(path, allow_pickle=False) as file:
                return {name: file[name] for name in file.files}
        return {"features": np.array(open_memmap(path, mode="r"))}  # no larger than the file
    except LupiError:
        raise
    except FileNotFoundError:
        raise LupiError(f"{path} does not exist") from None
    except Exception as error:  # a hostile file may raise anything inside numpy
        raise LupiError(f"{path} can't be read as arrays: {error}") from None


def refuse_growth(path: Path, always: int | None = None) -> None:
    """Refuse a zip that would expand to more than `always` (256 MiB) and 100 times its size."""
    check_regular(path)
    with zipfile.ZipFile(path) as file:
        members = file.infolist()
    n_bytes, most = sum(m.file_size for m in members), largest_content(path.stat().st_size, always)
    if n_bytes > most or any(m.compress_type not in METHODS for m in members):
        raise LupiError(
            f"{path} would become {n_bytes:,} bytes, at most {most:,} are read of a file of its "
            "size: write it without compression"
        )
