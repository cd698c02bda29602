"""A comparison of images that takes seconds, and what it recorded."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

TINY: dict[str, Any] = {
    "name": "tiny",
    "task": {
        "name": "image-folder",
        "root": "pets",
        "boxes": "boxes.csv",
        "image_size": 16,
        "n_val": 2,
        "n_test": 2,
        "cache": "cache",
    },
    "network": {"width": 2, "n_hidden": 8},
    "train": {"epochs": 4, "batch_size": 4},
    "arms": {
        "no-xstar": {"method": "no-xstar"},
        "het-dropout": {"method": "het-dropout", "controls": ["shuffled"]},
    },
    "sizes": [8],
    "seeds": 2,
}
"""Six runs over a few images that are decoded first."""


def write_settings(folder: Path, **changes: Any) -> str:
    (folder / "tiny.yaml").write_text(yaml.safe_dump({**TINY, **changes}))
    return "tiny.yaml"


def processes_of(session: int) -> list[str]:
    """Return the command of each process in a session."""
    commands = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            state, _, _, its_session = (process / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(its_session) == session and state != "Z":
                commands.append((process / "cmdline").read_text().replace("\0", " "))
    return commands


def recorded(folder: Path) -> dict[str, bytes]:
    """Return every file that holds numbers: results, students, vocabularies, the plan."""
    kept = ("comparison.json", "result.json", "settings.json", "student.safetensors", "samples.npz")
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.name in kept
    }
