"""Fingerprints of file contents, to detect changed data."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from lupi.errors import LupiError
from lupi.limits import open_regular


def fingerprint_of(paths: Iterable[Path]) -> str:
    """Return 12 hex digits that change with the files' content."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(_sum(path))
    return digest.hexdigest()[:12]


def _sum(path: Path) -> bytes:
    try:
        with open_regular(path) as file:
            return hashlib.file_digest(file, "sha256").digest()
    except FileNotFoundError:
        raise LupiError(f"{path} does not exist") from None
    except OSError as error:
        raise LupiError(f"{path} can't be read: {error}") from None
