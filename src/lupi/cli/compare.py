"""`lupi compare`: run a comparison, or what is left of it, to its verdict."""

import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lupi.cli.output import Json, Sets, Workers, prepare_data, print_summary, resumable, say

if TYPE_CHECKING:
    from lupi.compare.settings import Plan
    from lupi.records import ComparisonRecord, PlannedRun


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

    With `tuning:` in the settings each arm's own are chosen first, by validation scores alone.
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


def n_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_comparison(
    raw: dict[str, Any], out: Path | None, workers: int | None, as_json: bool, command: str
) -> None:
    """Run a comparison from its raw settings and print its verdict."""
    from lupi.compare.comparison import phases

    plan = prepared_plan(raw)
    folder = out or Path("runs") / plan.settings.name
    with resumable():
        for phase in phases(plan, folder):
            do_runs(phase, folder, workers or n_cores())
    print_summary(folder, as_json, command)


def prepared_plan(raw: dict[str, Any]) -> "Plan":
    """Check the settings of a comparison, decode its pictures, and list its runs."""
    from lupi.compare.settings import ComparisonSettings, check, make_plan

    settings = ComparisonSettings.parse(raw, "")
    check(settings)
    with resumable():
        prepare_data(settings.task)
    return make_plan(settings)


def do_runs(
    plan: "Plan",
    folder: Path,
    n_workers: int,
    wanted: "Callable[[PlannedRun], bool]" = lambda run: True,
) -> None:
    """Do what a plan lacks, its trials until it is tuned, under a live table.

    Only `wanted` runs are done, and all trials.
    """
    from lupi.cli.live import LiveTable
    from lupi.compare.comparison import opened
    from lupi.compare.engine import execute
    from lupi.records import read_comparison

    with opened(plan, folder) as jobs:
        record = read_comparison(folder)
        record = replace(record, runs=[run for run in record.runs if wanted(run.plan)])
        if plan.is_tuned:
            ids = {run.plan.run_id for run in record.runs}
            jobs = [job for job in jobs if job.run_id in ids]
        say(f"{_work(plan, record, len(jobs))}, {n_workers} at a time, in {folder}")
        table = LiveTable(record, trials=not plan.is_tuned)
        table.follow(execute(jobs, n_workers))


def _work(plan: "Plan", record: "ComparisonRecord", n_jobs: int) -> str:
    if plan.is_tuned:
        sizes = {run.plan.size for run in record.runs}
        seeds = {run.plan.seed for run in record.runs}
        return (
            f"{len(plan.arms)} arms x {len(sizes)} sizes x {len(seeds)} seeds: "
            f"{n_jobs} of {len(record.runs)} runs to do"
        )
    first = plan.candidates[0]
    return (
        f"tuning: {len(plan.candidates)} candidates x {len(first.seeds)} seeds at "
        f"n = {first.size}: {n_jobs} of {len(plan.trials)} trials to do"
    )
