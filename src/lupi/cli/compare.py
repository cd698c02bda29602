"""`lupi compare`: run a comparison, or what is left of it, to its verdict."""

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from lupi.cli.output import Json, Sets, Workers, prepare_data, print_summary, resumable, say


def compare(
    settings: Annotated[
        Path,
        typer.Argument(
            help="A YAML file, or the name of one that comes with lupi, such as `tiny/sizes`."
        ),
    ],
    set_: Sets = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the records. By default runs/NAME.")
    ] = None,
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """Train every arm at every size with every seed, and judge whether x* helped.

    Only what has no result yet is run: stop it at any time, start it again with the same line,
    and it goes on to the same numbers. The verdict is printed, and a page for the browser
    written to `report.html` in the folder of the records.

    Example: `lupi compare mine.yaml --set seeds=8 --set train.epochs=40`
    """
    from lupi.configs import find_settings
    from lupi.settings import override, read_yaml

    raw = override(read_yaml(find_settings(settings)), set_ or [])
    run_comparison(raw, out, workers, as_json, command=command_line())


def command_line() -> str:
    """Return the command as the user typed it."""
    return shlex.join(["lupi", *sys.argv[1:]])


def _n_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_comparison(
    raw: dict[str, Any], out: Path | None, workers: int | None, as_json: bool, command: str
) -> None:
    """Run a comparison from its raw settings and print its verdict."""
    from lupi.cli.live import LiveTable
    from lupi.compare.comparison import opened
    from lupi.compare.engine import execute
    from lupi.compare.settings import ComparisonSettings, make_plan
    from lupi.records import read_comparison

    settings = ComparisonSettings.parse(raw, "")
    with resumable():
        prepare_data(settings.task)
    plan = make_plan(settings)
    folder = out or Path("runs") / plan.settings.name
    n_workers = workers or _n_cores()
    with resumable(), opened(plan, folder) as jobs:
        say(
            f"{len(plan.arms)} arms x {len(plan.settings.sizes)} sizes x "
            f"{len(plan.settings.seeds)} seeds: {len(jobs)} of {len(plan.runs)} runs to do, "
            f"{n_workers} at a time, in {folder}"
        )
        LiveTable(read_comparison(folder)).follow(execute(jobs, n_workers))
    print_summary(folder, as_json, command)
