"""`lupi methods`: list the methods and their settings."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from lupi.cli.options import Json
from lupi.cli.output import print_json
from lupi.interface.console import PlainConsole
from lupi.methods.facts import MethodFacts, list_facts

if TYPE_CHECKING:
    from lupi.search import Choices, Space
    from lupi.train.learners import Learner


def methods(
    name: Annotated[str | None, typer.Argument(help="Show the settings of this method.")] = None,
    as_json: Json = False,
) -> None:
    """List the methods and the classical models, or the settings of one of them.

    Example: `lupi methods het-dropout`
    """
    if name is not None:
        from lupi.train.learners import find_learner

        method = find_learner(name)
        if as_json:
            search = {key: _plain(choices) for key, choices in _space(method).items()}
            variants = method.Settings.own_variants().values()
            schemas = [one.model_json_schema() for one in variants or (method.Settings,)]
            schema = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
            print_json({**schema, "search": search})
        else:
            _print_settings(method)
        return
    found = list_facts()
    if as_json:
        print_json({"methods": [facts._asdict() for facts in found]})
        return
    table = Table(box=None, pad_edge=False)
    for column in ("method", "uses x*", "kinds of x*", "what it does"):
        table.add_column(column, no_wrap=column == "method")
    for facts in found:
        kinds = ", ".join(facts.kinds) if facts.uses_xstar else "-"
        table.add_row(facts.name, _use(facts), kinds, facts.summary)
    PlainConsole().print(table)


def _use(facts: MethodFacts) -> str:
    if facts.sees_xstar_at_test:
        return "also at test"
    return "yes" if facts.uses_xstar else "no"


def _print_settings(method: "Learner") -> None:
    console = PlainConsole()
    console.print(f"[bold]{method.name}[/]: {method.summary}\n")
    if not method.Settings.fields():
        console.print("no settings")
        _print_search(method, console)
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("setting", no_wrap=True)
    table.add_column("default", no_wrap=True)
    table.add_column("meaning")
    for key, field in method.Settings.fields().items():
        default = json.dumps(field.default, default=str)
        table.add_row(key, default, " ".join((field.description or "").split()))
    console.print(table)
    _print_search(method, console)


def _space(method: "Learner") -> "Space":
    """Return the search ranges; none for a classical model, which tunes itself."""
    return getattr(method, "search", {})


def _print_search(method: "Learner", console: PlainConsole) -> None:
    from lupi.search import format_choices

    if not _space(method):
        return
    console.print("\nSearch ranges for tuning, unless an arm sets `search`:")
    table = Table(box=None, pad_edge=False, show_header=False)
    for key, choices in _space(method).items():
        table.add_row(key, format_choices(choices))
    console.print(table)


def _plain(choices: "Choices") -> Any:
    from lupi.search import Range

    return choices.resolved() if isinstance(choices, Range) else list(choices)
