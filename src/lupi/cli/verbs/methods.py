"""`lupi methods`: which methods there are, and what can be set."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from lupi.cli.options import Json
from lupi.cli.output import print_json

if TYPE_CHECKING:
    from lupi.interface.listing import MethodInfo
    from lupi.search import Choices, Space
    from lupi.train.learners import Learner


SHOWN = ("name", "summary", "uses_xstar", "sees_xstar_at_test", "kinds")
"""What --json says of each method."""


def methods(
    name: Annotated[str | None, typer.Argument(help="Show the settings of this method.")] = None,
    as_json: Json = False,
) -> None:
    """List the methods and the classical models, or the settings of one of them.

    Example: `lupi methods het-dropout`
    """
    from lupi.interface.listing import list_methods
    from lupi.train.learners import find_learner

    if name is not None:
        method = find_learner(name)
        if as_json:
            search = {key: _plain(choices) for key, choices in _space(method).items()}
            print_json({**method.Settings.model_json_schema(), "search": search})
        else:
            _print_settings(method)
        return
    found = list(list_methods().values())
    if as_json:
        print_json({"methods": [{key: getattr(info, key) for key in SHOWN} for info in found]})
        return
    table = Table(box=None, pad_edge=False)
    for column in ("method", "uses x*", "kinds of x*", "what it does"):
        table.add_column(column, no_wrap=column == "method")
    for info in found:
        kinds = ", ".join(info.kinds) if info.uses_xstar else "-"
        table.add_row(info.name, _use(info), kinds, info.summary)
    Console().print(table)


def _use(info: "MethodInfo") -> str:
    if info.sees_xstar_at_test:
        return "at test too"
    return "yes" if info.uses_xstar else "no"


def _print_settings(method: "Learner") -> None:
    console = Console()
    console.print(f"[bold]{method.name}[/]: {method.summary}\n")
    if not method.Settings.model_fields:
        console.print("nothing to set")
        _print_search(method, console)
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("setting", no_wrap=True)
    table.add_column("default", no_wrap=True)
    table.add_column("meaning")
    for key, field in method.Settings.model_fields.items():
        default = json.dumps(field.default, default=str)
        table.add_row(key, default, " ".join((field.description or "").split()))
    console.print(table)
    _print_search(method, console)


def _space(method: "Learner") -> "Space":
    """Return where tuning looks: nowhere for a classical model, which tunes itself."""
    return getattr(method, "search", {})


def _print_search(method: "Learner", console: Console) -> None:
    from lupi.search import shown

    if not _space(method):
        return
    console.print("\nWhere tuning looks, unless an arm has a `search` of its own:")
    table = Table(box=None, pad_edge=False, show_header=False)
    for key, choices in _space(method).items():
        table.add_row(key, shown(choices))
    console.print(table)


def _plain(choices: "Choices") -> Any:
    from lupi.search import Range

    return choices.resolved() if isinstance(choices, Range) else list(choices)
