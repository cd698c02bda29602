"""Plug-ins: tasks, methods, commands and settings files of other installed packages.

A package registers them as entry points in its pyproject.toml:

    [project.entry-points."lupi.tasks"]      # a class as in lupi.tasks
    my-task = "my_package.task:MyTask"
    [project.entry-points."lupi.methods"]    # a subclass of lupi.core.Method
    my-method = "my_package.method:MyMethod"
    [project.entry-points."lupi.commands"]   # a function for typer
    my-verb = "my_package.command:my_verb"
    [project.entry-points."lupi.configs"]    # a package that contains YAML files
    my-package = "my_package.configs"

Only installed packages are asked; nothing that a file names is imported.
"""

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from lupi.errors import LupiError

Group = Literal["lupi.tasks", "lupi.methods", "lupi.commands", "lupi.configs"]

IN_LUPI_PAPER: dict[Group, tuple[str, ...]] = {
    "lupi.tasks": ("translation", "imagenet", "tiny-imagenet"),
    "lupi.methods": (
        "imagination",
        "het-dropout-official",
        "info-dropout-official",
        "hallucination-official",
        "miml-fcn-official",
    ),
    "lupi.commands": ("translate", "bounds"),
    "lupi.configs": ("multi30k", "paper", "tiny"),
}
"""What the package `lupi_paper` adds: the experiments of the paper."""


@cache
def plugins(group: Group) -> dict[str, EntryPoint]:
    """Return the entry points of a group, by name."""
    return {entry.name: entry for entry in sorted(entry_points(group=group))}


def load_plugin(entry: EntryPoint) -> Any:
    """Import what an entry point names."""
    try:
        return entry.load()
    except (ImportError, AttributeError) as error:
        package = entry.dist.name if entry.dist else entry.value
        raise LupiError(
            f"{entry.name} comes with {package}, which can't be imported ({error}); "
            "install it again, or uninstall it"
        ) from error


def plugin_folders() -> list[Path]:
    """Return the folders of settings files."""
    specs = [find_spec(entry.value) for entry in plugins("lupi.configs").values()]
    return [Path(path) for spec in specs if spec for path in spec.submodule_search_locations or ()]


def in_lupi_paper(group: Group, name: str) -> str | None:
    """Return a hint if `name` comes with lupi_paper, and that is not installed; else None."""
    is_installed = "lupi-paper" in plugins("lupi.configs")
    if is_installed or name not in IN_LUPI_PAPER[group]:
        return None
    return f"{name} comes with lupi_paper, which is not installed: pip install lupi-paper"
