"""Settings files that come with lupi, found by names such as `tiny/sizes`."""

from pathlib import Path
from typing import Any

from lupi.errors import LupiError
from lupi.settings import read_yaml, unknown_name

FOLDER = Path(__file__).parent


def settings_names() -> list[str]:
    """Return the names of all settings files that come with lupi."""
    return sorted(str(path.relative_to(FOLDER).with_suffix("")) for path in FOLDER.rglob("*.yaml"))


def find_settings(given: Path) -> Path:
    """Return a file of the user's or, where there is none, the one of that name in lupi."""
    if not given.name:
        raise LupiError(f"{given} is a folder; expected a settings file, a table or texts")
    shipped = FOLDER / given.with_suffix(".yaml")
    is_shipped = shipped.exists() and shipped.is_relative_to(FOLDER) and ".." not in given.parts
    if given.is_dir() and not is_shipped:
        raise LupiError(f"{given} is a folder; expected a settings file, a table or texts")
    if given.is_file() or (given.exists() and not is_shipped):
        return given
    if is_shipped:  # also where a folder has that name
        return shipped
    raise LupiError(
        f"{given}: no such file, and {unknown_name('settings file', str(given), settings_names())}"
    )


def read_settings(given: Path) -> dict[str, Any]:
    """Read a file of the user's or of lupi's."""
    return read_yaml(find_settings(given))
