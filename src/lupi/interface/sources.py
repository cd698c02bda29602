"""Turn what a user gives (data frame, table, texts, settings or task) into settings."""

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lupi.errors import LupiError
from lupi.interface.console import print_message

URL = re.compile(r"[a-z][a-z0-9+]+:/", re.IGNORECASE)
TEXT_ONLY = ("text", "rationale")
IMAGE_ONLY = ("masks", "boxes", "labels")
OF_IMAGES = (*IMAGE_ONLY, "groups", "metric")
"""What can be given with a folder of images."""
TABLE_ONLY = ("privileged", "ignore", "items", "gold", "weights")

Columns = Mapping[str, Any]
"""Settings of the task, such as the roles of columns; None: not given."""


def settings_from(
    data: Any,
    columns: Columns,
    changes: Mapping[str, Any] = {},
    folder: Path | None = None,
    arms: Sequence[str] | Mapping[str, Any] | None = None,
    xstar_fracs: Sequence[float] | None = None,
) -> dict[str, Any]:
    """Return the raw settings of a comparison on given data.

    Args:
        data: A pandas DataFrame; the path of a table, of texts or of a settings file (or the name
            of one that comes with lupi); settings as a mapping; or a `Task`.
        columns: Settings of the task that tables and texts need; None: not given.
        changes: Values by the path of a setting, such as `train.epochs`.
        folder: Folder of the records, where a data frame is stored, too.
        arms: Names of some arms, or the settings of all; by default those for the kind of data.
        xstar_fracs: Fractions of training rows with x*, for all arms that use it.
    """
    from lupi.settings import assign

    raw = _read(data, columns, changes, folder)
    if arms is not None:
        from lupi.interface.named_arms import chosen_arms

        raw = {**raw, "arms": chosen_arms(arms, raw.get("arms", {}))}
    if xstar_fracs is not None:
        from lupi.interface.named_arms import with_fractions

        raw = {**raw, "arms": with_fractions(raw.get("arms", {}), xstar_fracs)}
    return assign(raw, changes)


def _read(
    data: Any, columns: Columns, changes: Mapping[str, Any], folder: Path | None
) -> dict[str, Any]:
    given = {name: value for name, value in columns.items() if value is not None}
    if isinstance(data, Mapping):
        _refuse(given, "settings have a `task` of their own")
        return dict(data)
    if isinstance(data, str | Path):
        if str(data) == "-":
            return _from_stdin(given, changes, folder)
        return _from_path(Path(data), given, changes)
    if _is_frame(data):
        return _from_frame(data, given, changes, folder)
    if hasattr(data, "splits") and hasattr(data, "for_run"):  # a Task, without importing torch
        from lupi.comparison.defaults import custom_comparison

        _refuse(given, "a task has its rows already")
        return custom_comparison(data, changes.get("sizes"))
    raise LupiError(
        "data: expected a pandas DataFrame, a path, settings (a mapping) or a Task, got "
        f"{type(data).__name__}"
    )


def _is_frame(data: Any) -> bool:
    """Return whether data are a pandas data frame, without importing pandas."""
    return any(cls.__module__.startswith("pandas.") for cls in type(data).__mro__) and hasattr(
        data, "columns"
    )


def _from_frame(
    frame: Any, given: Mapping[str, Any], changes: Mapping[str, Any], folder: Path | None
) -> dict[str, Any]:
    from lupi.interface.frames import frame_identity, store_frame
    from lupi.records import default_folder

    name = f"{'texts' if 'text' in given else 'table'}-{frame_identity(frame)}"
    path = store_frame(frame, folder or default_folder(name))
    raw = _from_file(path, given, changes, "the data frame")
    return {**raw, "name": name}


def _from_stdin(
    given: Mapping[str, Any], changes: Mapping[str, Any], folder: Path | None
) -> dict[str, Any]:
    from lupi.interface.frames import name_bytes, store_bytes
    from lupi.records import default_folder

    content = sys.stdin.buffer.read()
    name = f"stdin-{name_bytes(content)}"
    path = store_bytes(content, folder or default_folder(name))
    return {**_from_file(path, given, changes, "stdin"), "name": name}


def _from_path(path: Path, given: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    from lupi.configs import find_settings
    from lupi.loaders.files import TABLES
    from lupi.loaders.text.exports import refuse_unread
    from lupi.settings import read_yaml

    if URL.match(str(path)):
        url = str(path).replace(":/", "://", 1)  # a path has single slashes
        raise LupiError(f"{url} is a URL; lupi reads files: download it, and give the file")
    if path.is_dir() or path.suffix.lower() == ".zip" or any(name in given for name in IMAGE_ONLY):
        return _from_images(path, given, changes)
    tool = _tool(path, given)
    if tool is not None:
        given = {"text": "text", "target": "label", "rationale": ["spans"], **given, "tool": tool}
        print_message(
            f"{path.name} is taken for an export of texts from {tool}: text from "
            f"`{given['text']}`, class from `{given['target']}`, x* from `{given['rationale'][0]}`"
        )
    if path.is_file() and not given:
        refuse_unread(path)
    if "text" in given or path.name.lower().endswith(TABLES):
        return _from_file(path, given, changes, str(path))
    for name in given:
        raise LupiError(
            f"{name}: it is for tables ({', '.join(TABLES)}) and texts; {path} is taken for "
            f"settings, where it is task.{name}"
        )
    return read_yaml(find_settings(path))


def _tool(path: Path, given: Mapping[str, Any]) -> str | None:
    """Return the annotation tool that exported a file of texts, unless columns say otherwise."""
    from lupi.loaders.text.exports import find_tool

    return None if "privileged" in given or "rationale" in given else find_tool(path)


def _from_images(
    root: Path, given: Mapping[str, Any], changes: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the default comparison of a folder or a zip of images."""
    from lupi.comparison.images import image_comparison
    from lupi.interface.console import progress_bar
    from lupi.loaders.images.index import has_image_suffix
    from lupi.settings import assign

    if (root / "comparison.json").exists():
        raise LupiError(
            f"{root} holds the records of a comparison; see it with: lupi report {root}"
        )
    if root.is_dir() and not any(has_image_suffix(path.name) for path in root.rglob("*")):
        raise LupiError(
            f"{root} is a folder; expected a settings file, a table or texts, or a folder with "
            "images"
        )
    for name in given:
        if name not in OF_IMAGES and name not in _image_settings():
            raise LupiError(f"{name}: {root} is taken for images, which have no `{name}`")
    of_task = {key: value for key, value in changes.items() if key.startswith("task.")}
    named = {name: _below(root, value) for name, value in given.items()}
    if isinstance(named.get("groups"), str) and ":" in named["groups"]:
        named["groups"], _, named["group_column"] = named["groups"].rpartition(":")
    task = assign({"task": {"root": str(root), **named}}, of_task)["task"]
    with progress_bar("looking at files") as show:
        show(0, 1)
        raw, notes = image_comparison(task)
    for note in notes:
        print_message(note)
    return raw


def _image_settings() -> Mapping[str, Any]:
    from lupi.tasks.images.image_folder import ImageFolderSettings

    return ImageFolderSettings.model_fields


def _below(root: Path, value: Any) -> Any:
    """Return a path that is given from here as one below the root, if it is there."""
    if not isinstance(value, str | Path):
        return value
    path, column = str(value), ""
    if not Path(path).exists() and ":" in path:
        path, _, column = path.rpartition(":")
    end = f":{column}" if column else ""
    if (root / path).exists() or not Path(path).exists():
        return f"{Path(path)}{end}"
    inside = Path(path).resolve()
    if inside != root.resolve() and inside.is_relative_to(root.resolve()):
        return f"{inside.relative_to(root.resolve())}{end}"
    return f"{Path(path)}{end}"


def _from_file(
    path: Path, given: Mapping[str, Any], changes: Mapping[str, Any], what: str
) -> dict[str, Any]:
    """Return the default comparison of a table or texts; changes to the task already apply."""
    from lupi.comparison.defaults import table_comparison, text_comparison
    from lupi.settings import assign

    of_task = {key: value for key, value in changes.items() if key.startswith("task.")}
    task = assign({"task": {"path": str(path), **given}}, of_task)["task"]
    if "text" in given:
        for name in TABLE_ONLY:
            if name in given:
                raise LupiError(f"{name}: it is for tables, not for texts; leave it out")
        _require(task, ("target", "rationale"), what, "texts", "--target y --rationale spans")
        return text_comparison(task)
    for name in TEXT_ONLY:
        if name in given:
            raise LupiError(f"{name}: it is for texts, with `text` (--text); leave it out")
    _require(task, ("target", "privileged"), what, "a table", "--target y --privileged a,b")
    return table_comparison(task)


def _require(
    task: Mapping[str, Any], names: Sequence[str], what: str, kind: str, example: str
) -> None:
    if any(not task.get(name) for name in names):
        raise LupiError(
            f"{what} is taken for {kind}, which needs {' and '.join(f'`{n}`' for n in names)}: "
            f"on the command line, give {example}"
        )


def _refuse(given: Mapping[str, Any], instead: str) -> None:
    for name in given:
        raise LupiError(f"{name}: it is for tables and texts; {instead}")
