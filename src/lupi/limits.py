"""Limits for files that others may have written: regular files only, of a known, bounded size.

A device never ends, a named pipe waits for a writer, and a sparse or compressed file of some
kilobytes may be read as gigabytes. All readers open files through this module.
"""

import os
import stat
from io import BufferedReader
from pathlib import Path

ALWAYS_READ = 256 * 2**20
"""Number of bytes that any file may expand to."""
LARGEST_GROWTH = 100
"""Factor by which a larger file may expand."""


def largest_content(n_bytes: int, always: int | None = None) -> int:
    """Return how many bytes may be read from a file that takes `n_bytes` on disk."""
    return max(ALWAYS_READ if always is None else always, LARGEST_GROWTH * n_bytes)


def check_regular(path: Path, max_bytes: int | None = None) -> int:
    """Return the size of a file; raise an OSError if it must not be read.

    Args:
        path: A regular file, or a link to one.
        max_bytes: Maximum size; by default only sparse files have one.
    """
    return _size(path.stat(), max_bytes)


def open_regular(path: Path, max_bytes: int | None = None) -> BufferedReader:
    """Open a file for reading; raise an OSError under the conditions of `check_regular`."""
    check_regular(path, max_bytes)
    # It may have been replaced since: O_NONBLOCK, so that opening a named pipe does not wait.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _BINARY)
    try:
        _size(os.fstat(descriptor), max_bytes)
    except OSError:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


_BINARY = getattr(os, "O_BINARY", 0)


def read_regular(path: Path, max_bytes: int | None = None) -> bytes:
    """Return the content of a file; raise an OSError under the conditions of `check_regular`."""
    with open_regular(path, max_bytes) as file:
        n_bytes = os.fstat(file.fileno()).st_size
        return file.read(n_bytes)  # and no more, if it grows meanwhile


def _size(found: os.stat_result, max_bytes: int | None) -> int:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError("it is a folder")
    if not stat.S_ISREG(found.st_mode):
        raise OSError("it is a device, a pipe or a socket; only regular files are read")
    on_disk = 512 * getattr(found, "st_blocks", found.st_size)
    if found.st_size > largest_content(on_disk):
        raise OSError(f"it is sparse: {found.st_size:,} bytes, of which {on_disk:,} are on disk")
    if max_bytes is not None and found.st_size > max_bytes:
        raise OSError(f"it has {found.st_size:,} bytes; at most {max_bytes:,} are read")
    return found.st_size
