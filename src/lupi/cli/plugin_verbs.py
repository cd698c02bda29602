"""Verbs of plug-ins: those installed, and a hint for those of lupi_paper where it is missing."""

from collections.abc import Callable

import typer

from lupi.errors import LupiError
from lupi.plugins import IN_LUPI_PAPER, in_lupi_paper, load_plugin, plugins

_ANY_ARGUMENTS = {"allow_extra_args": True, "ignore_unknown_options": True}


def add_plugin_verbs(app: typer.Typer) -> None:
    """Add a command for each verb; one that can't be used says why when it is called."""
    for name, entry in plugins("lupi.commands").items():
        try:
            app.command(name)(load_plugin(entry))
        except LupiError as error:
            _add_error(app, name, str(error))
    for name in IN_LUPI_PAPER["lupi.commands"]:
        if hint := in_lupi_paper("lupi.commands", name):
            _add_error(app, name, f"lupi {hint}")


def _add_error(app: typer.Typer, name: str, text: str) -> None:
    app.command(name, hidden=True, context_settings=_ANY_ARGUMENTS)(_raising(text))


def _raising(text: str) -> Callable[[], None]:
    def verb() -> None:
        raise LupiError(text)

    return verb
