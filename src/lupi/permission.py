"""What a file names is neither imported, run nor fetched unless the user allows that very name.

Names of code (`package.module:function`), shell commands (`pipe:…`) and URLs may appear in
settings files and run folders, which may come from someone else. They are allowed by `--allow NAME`
or `--set key=NAME` on the command line, or by `lupi.allow(NAME)` in Python; a file can't do that.
"""

from typing import Any

from lupi.errors import LupiError

_allowed: set[str] = set()


def allow(*names: str) -> None:
    """Allow code, shell commands or URLs that settings name, in this process and its workers.

    Args:
        names: Exactly as the settings name them, such as `package.module:function`.
    """
    _allowed.update(names)


def allow_texts_in(value: Any) -> None:
    """Allow every text in a value that the user gave on the command line or in Python."""
    if isinstance(value, str):
        allow(value)
    elif isinstance(value, dict | list | tuple):
        for inner in value.values() if isinstance(value, dict) else value:
            allow_texts_in(inner)


def allowed_names() -> tuple[str, ...]:
    """Return all names that are allowed, to pass them on to a worker."""
    return tuple(sorted(_allowed))


def require_permission(name: str, key: str, what: str) -> None:
    """Refuse a name in a file that the user did not allow.

    Args:
        name: The name.
        key: The setting that contains it, for the message.
        what: What using it would do, such as "would run code".
    """
    if name not in _allowed:
        raise LupiError(
            f"{key}: {name} is named in a file and {what}. If you trust it, allow it by name: "
            f"--allow '{name}' on the command line, or lupi.allow({name!r}) in Python"
        )
