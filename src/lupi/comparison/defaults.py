"""What default comparisons share: their names and training-set sizes."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lupi.errors import LupiError
from lupi.files import read_json
from lupi.records import default_folder
from lupi.settings import TaskSettings, fingerprint

ROLES = ("path", "target", "privileged", "text", "rationale", "features", "ignore")
"""Settings that make a question: what is predicted from what, with which x*."""
SMALLEST_SIZE = 20


def default_sizes(n_train: int, largest: int, n_sizes: int = 3) -> list[int]:
    """Return sizes, each twice the previous; the last is all rows, `largest` at most."""
    if n_train < SMALLEST_SIZE:
        raise LupiError(
            f"{n_train} rows are left for training; a comparison takes {SMALLEST_SIZE} or more"
        )
    last = min(n_train, largest)
    sizes = [last // 2**i for i in reversed(range(n_sizes))]
    return [size for size in sizes if size >= SMALLEST_SIZE]


def name_question(settings: TaskSettings, target: str, path: Path) -> str:
    """Return the file's name, with the target if that name's folder answers another question.

    So another question about the same file has a folder of its own.
    """
    stem = path.name.removesuffix(".gz").rpartition(".")[0] or path.name
    asked = _question(settings.model_dump(mode="json"))
    plain, longer = plain_name(stem) or "data", plain_name(f"{stem}-{target}")
    for name in (plain, longer):
        if _answered(default_folder(name)) in (None, asked):
            return name
    return f"{longer}-{fingerprint(asked)[:6]}"


def _answered(folder: Path) -> dict[str, Any] | None:
    """Return the question that the comparison in a folder answers; None if there is none."""
    try:
        return _question(read_json(folder / "comparison.json")["settings"]["task"])
    except (OSError, LupiError, KeyError, TypeError, ValueError):
        return None


def _question(task: Mapping[str, Any]) -> dict[str, Any]:
    return {role: task[role] for role in ROLES if task.get(role)}


def plain_name(name: str) -> str:
    """Return a name that is good for a folder."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._")
