"""SHA-256 checksums of an exported folder, to detect damaged or changed files."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from lupi.errors import LupiError
from lupi.files import read_json, write_json
from lupi.limits import open_regular

MANIFEST = "manifest.json"
DESCRIPTION = "student.json"
WEIGHTS = "student.safetensors"
ONNX = "student.onnx"
TOKENIZER = "tokenizer.json"
"""Of a student on the words of a pretrained encoder."""


def write_manifest(folder: Path) -> None:
    """Write the checksums of all other files in the folder."""
    sums = {path.name: _sum(path) for path in folder.iterdir() if path.name != MANIFEST}
    write_json(folder / MANIFEST, {"sha256": sums})


def check_manifest(folder: Path, used: Iterable[str]) -> None:
    """Raise an error if files differ from those that were exported.

    Args:
        folder: The exported folder.
        used: Names of files that will be read if they exist: each must have a checksum.
    """
    sums = read_json(folder / MANIFEST).get("sha256")
    if not isinstance(sums, dict) or not sums:
        raise LupiError(
            f"{folder / MANIFEST} has no checksums: this folder was not written by `lupi export`"
        )
    for name, expected in sums.items():
        path = folder / name
        if path.parent != folder or not path.is_file():
            raise LupiError(f"{folder} is incomplete: {name} is missing; export the student again")
        if _sum(path) != expected:
            raise LupiError(
                f"{path} is not the exported file: its SHA-256 differs from the one in "
                f"{MANIFEST}. It was changed or damaged; export the student again"
            )
    for name in used:
        if name not in sums and (folder / name).exists():
            raise LupiError(
                f"{folder / name} is not listed in {MANIFEST}, so it was not exported with this "
                "student. Remove it, or export the student again"
            )


def _sum(path: Path) -> str:
    try:
        with open_regular(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise LupiError(f"{path} can't be read: {error}") from None
