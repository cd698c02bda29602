"""Settings files that come with lupi, found by names such as `tiny/sizes`."""

from pathlib import Path

from lupi.errors import LupiError
from lupi.settings import unknown_name

FOLDER = Path(__file__).parent


def settings_names() -> list[str]:
    """Return the names of all settings files that come with lupi."""
    return sorted(str(path.relative_to(FOLDER).with_suffix("")) for path in FOLDER.rglob("*.yaml"))


def find_settings(given: Path) -> Path:
    """Return a file of the user's or, where there is none, the one of that name in lupi."""
    if given.exists():
        return given
    shipped = FOLDER / given.with_suffix(".yaml")
    if shipped.exists() and shipped.is_relative_to(FOLDER) and ".." not in given.parts:
        return shipped
    raise LupiError(
        f"{given}: no such file, and {unknown_name('settings file', str(given), settings_names())}"
    )
