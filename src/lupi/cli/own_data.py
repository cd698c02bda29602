"""A file of the user's own and what its columns are for, to the settings of a comparison."""

from pathlib import Path
from typing import Any

TABLES = (".csv", ".tsv", ".txt", ".data", ".parquet", ".pq")
"""How the names of tables end; anything else is settings, or texts if --text says so."""
OF_TEXTS = ("text", "rationale")
OF_BOTH = ("target",)
LISTS = ("privileged", "ignore", "rationale")

Columns = dict[str, str | None]
"""By option; several names are separated by commas."""


def is_own_data(path: Path, columns: Columns) -> bool:
    """Tell a table or texts from a settings file."""
    return columns["text"] is not None or path.suffix.lower() in TABLES


def own_comparison(path: Path, columns: Columns, changes: list[str]) -> dict[str, Any]:
    """Return the comparison that columns stand for; --set task.… counts already."""
    from lupi.comparison.table import table_comparison
    from lupi.comparison.text import text_comparison

    if columns["text"] is not None:
        _refuse([name for name in columns if name not in (*OF_TEXTS, *OF_BOTH)], columns, "texts")
        task = _task(path, columns, changes)
        _require(task, ("target", "rationale"), f"{path}: texts need --target and --rationale")
        return text_comparison(task)
    _refuse(OF_TEXTS, columns, "a table without --text")
    task = _task(path, columns, changes)
    _require(
        task,
        ("target", "privileged"),
        f"{path} is taken for a table, whose columns have to be named: give --target and "
        f"--privileged, as in lupi compare {path} --target y --privileged a,b; or --text for texts",
    )
    return table_comparison(task)


def refuse_columns(columns: Columns) -> None:
    """Refuse options for tables and texts where a settings file is given."""
    from lupi.errors import LupiError

    for option, value in columns.items():
        if value is not None:
            raise LupiError(
                f"--{option} is for a table ({', '.join(TABLES)}) or texts; in settings it is "
                f"task.{option}"
            )


def _task(path: Path, columns: Columns, changes: list[str]) -> dict[str, Any]:
    from lupi.settings import override

    task: dict[str, Any] = {"path": str(path)}
    for option, value in columns.items():
        if value is not None:
            names = [name.strip() for name in value.split(",")]
            task[option] = names if option in LISTS else value
    changed = override({"task": task}, [c for c in changes if c.startswith("task.")])
    own: dict[str, Any] = changed["task"]
    return own


def _refuse(names: list[str] | tuple[str, ...], columns: Columns, what: str) -> None:
    from lupi.errors import LupiError

    for name in names:
        if columns[name] is not None:
            raise LupiError(f"--{name} has no meaning for {what}; leave it out")


def _require(task: dict[str, Any], names: tuple[str, ...], message: str) -> None:
    from lupi.errors import LupiError

    if any(name not in task for name in names):
        raise LupiError(message)
