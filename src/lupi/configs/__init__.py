"""Settings files that come with lupi and its plug-ins, found by names such as `tables/bank`."""

from pathlib import Path
from typing import Any

from lupi.errors import LupiError
from lupi.plugins import in_lupi_paper, plugin_folders
from lupi.settings import read_yaml, unknown_name

FOLDER = Path(__file__).parent


def settings_names() -> list[str]:
    """Return the names of all settings files that come with lupi and its plug-ins."""
    return sorted(
        str(path.relative_to(folder).with_suffix(""))
        for folder in (FOLDER, *plugin_folders())
        for path in folder.rglob("*.yaml")
    )


def find_settings(given: Path) -> Path:
    """Return a file of the user's or, where there is none, the one of that name in lupi."""
    if not given.name:
        raise LupiError(f"{given} is a folder; expected a settings file, a table or texts")
    shipped = _shipped(given)
    if given.is_dir() and shipped is None:
        raise LupiError(f"{given} is a folder; expected a settings file, a table or texts")
    if given.is_file() or (given.exists() and shipped is None):
        return given
    if shipped is not None:  # also where a folder has that name
        return shipped
    if hint := in_lupi_paper("lupi.configs", given.parts[0]):
        raise LupiError(f"{given}: no such file; {hint}")
    raise LupiError(
        f"{given}: no such file, and {unknown_name('settings file', str(given), settings_names())}"
    )


def _shipped(given: Path) -> Path | None:
    """Return the file of this name in lupi or a plug-in, if there is one."""
    if given.is_absolute() or ".." in given.parts:
        return None
    paths = (folder / given.with_suffix(".yaml") for folder in (FOLDER, *plugin_folders()))
    return next((path for path in paths if path.exists()), None)


def read_settings(given: Path) -> dict[str, Any]:
    """Read a file of the user's or of lupi's."""
    return read_yaml(find_settings(given))
