"""SHA-256 sums of the files of an exported folder, so that a damaged or changed one is refused."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from lupi.errors import LupiError
from lupi.files import read_json, write_json

MANIFEST = "manifest.json"


def write_manifest(folder: Path) -> None:
    """Write the sums of all other files that are in the folder."""
    sums = {path.name: _sum(path) for path in folder.iterdir() if path.name != MANIFEST}
    write_json(folder / MANIFEST, {"sha256": sums})


def check_manifest(folder: Path, used: Iterable[str]) -> None:
    """Refuse a folder whose files are not as they were exported.

    Args:
        folder: of `lupi export`.
        used: names of files that will be read if they are there: each must have a sum.
    """
    sums = read_json(folder / MANIFEST).get("sha256")
    if not isinstance(sums, dict) or not sums:
        raise LupiError(
            f"{folder / MANIFEST} holds no checksums: `lupi export` did not write this folder"
        )
    for name, expected in sums.items():
        path = folder / name
        if path.parent != folder or not path.is_file():
            raise LupiError(f"{folder} is not whole: {name} is missing; export the student again")
        if _sum(path) != expected:
            raise LupiError(
                f"{path} is not the file that was exported: its SHA-256 is another than in "
                f"{MANIFEST}. It was changed or damaged; export the student again"
            )
    for name in used:
        if name not in sums and (folder / name).exists():
            raise LupiError(
                f"{folder / name} is not listed in {MANIFEST}: it was not exported with this "
                "student. Remove it, or export the student again"
            )


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
