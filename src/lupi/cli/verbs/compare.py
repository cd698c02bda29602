"""`lupi compare`: run a comparison, or what is left of it, to its verdict."""

import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from lupi.cli import engines, looks
from lupi.cli.output import (
    Json,
    Out,
    Sets,
    Workers,
    prepare_data,
    print_summary,
    resumable,
    say,
    say_facts,
)
from lupi.cli.own_data import is_own_data, own_comparison, refuse_columns

if TYPE_CHECKING:
    from lupi.comparison.jobs import Engine
    from lupi.comparison.plan import Plan
    from lupi.records import ComparisonRecord, PlannedRun

RUN_AGAIN = "fix the problem and run the same command to resume"


def compare(
    settings: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A YAML file, the name of one that comes with lupi, such as `tables/students`, "
            "a table (CSV, Parquet), or texts (with --text; JSON lines, too).",
        ),
    ],
    target: Annotated[
        str | None, typer.Option(help="Column to predict (tables and texts).", metavar="COLUMN")
    ] = None,
    privileged: Annotated[
        list[str] | None,
        typer.Option(help="Columns that are x* (tables only).", metavar="COLUMN,COLUMN"),
    ] = None,
    text: Annotated[
        str | None, typer.Option(help="Column with the texts (texts only).", metavar="COLUMN")
    ] = None,
    rationale: Annotated[
        list[str] | None,
        typer.Option(
            help="Column with the rationales, which are x*; the text column itself if tags mark "
            "them there; several columns for several annotators (texts only).",
            metavar="COLUMN",
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            help="Columns to drop, such as names or row numbers (tables only).",
            metavar="COLUMN,COLUMN",
        ),
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(
            help="Column whose rows of equal value, such as those of one person, are never "
            "divided between training and test (tables only).",
            metavar="COLUMN",
        ),
    ] = None,
    items: Annotated[
        str | None,
        typer.Option(
            help="Column whose rows of equal value are answers to one item: never divided, and "
            "scored once (tables only).",
            metavar="COLUMN",
        ),
    ] = None,
    gold: Annotated[
        str | None,
        typer.Option(
            help="Column with an item's true target, to score against; by default what its "
            "answers say together (tables only).",
            metavar="COLUMN",
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            help="Column by which training rows precede test rows (tables only).",
            metavar="COLUMN",
        ),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            help="Column that says train, val or test for each row (tables only).",
            metavar="COLUMN",
        ),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            help="Column that says how much a row counts (tables only).", metavar="COLUMN"
        ),
    ] = None,
    print_settings: Annotated[
        bool, typer.Option("--print-settings", help="Print the YAML of the comparison and exit.")
    ] = False,
    until_decided: looks.UntilDecided = False,
    max_seeds: looks.MaxSeeds = None,
    set_: Sets = None,
    out: Out = None,
    workers: Workers = None,
    engine: engines.Name = engines.EngineName.local,
    address: engines.Address = None,
    cpus: engines.Cpus = None,
    gpus: engines.Gpus = 0,
    memory: engines.Memory = None,
    minutes: engines.Minutes = None,
    sbatch: engines.Sbatch = None,
    as_json: Json = False,
) -> None:
    """Train every arm at every size with every seed, and judge whether x* helped.

    With `tuning:` in the settings each arm's own are chosen first, by validation scores alone.
    Only what has no result yet is run: stop it at any time, start it again with the same line,
    and it goes on to the same numbers. The verdict is printed, and a page for the browser
    written to `report.html` in the folder of the records.

    Example: `lupi compare mine.yaml --set seeds=8 --set train.epochs=40`

    A table needs no settings: all other columns are x, each seed draws its own training,
    validation and test rows, and the methods are compared with their controls, gradient
    boosting and a linear model.

    Example: `lupi compare pupils.csv --target G3 --privileged G1,G2 --ignore Id`

    Texts need no settings either; their rationales are spans, snippets, flags or tags.

    Example: `lupi compare reviews.csv --text review --target label --rationale spans`

    With --until-decided seeds are added, and judged at 7, 9, 12, 16, ... of them, until each arm
    with x* has an answer at each size: helps, hurts, worse than a control, practically the same;
    or the budget is out. The verdict allows for these looks.

    Example: `lupi compare mine.yaml --until-decided --max-seeds 20`

    The exit code is 1 if a run failed, 2 for a mistake in the command or its settings.

    On many machines, records and data in a folder that they share:

    Example: `lupi compare mine.yaml --engine ray --address auto`
    """
    from lupi.configs import read_settings
    from lupi.report.page.provenance import as_yaml
    from lupi.settings import override

    columns = {
        "target": target,
        "privileged": ",".join(privileged) if privileged else None,
        "text": text,
        "rationale": ",".join(rationale) if rationale else None,
        "ignore": ",".join(ignore) if ignore else None,
        "groups": groups,
        "items": items,
        "gold": gold,
        "time": time,
        "split": split,
        "weights": weights,
    }
    if is_own_data(settings, columns):
        raw = own_comparison(settings, columns, set_ or [])
    else:
        refuse_columns(columns)
        raw = read_settings(settings)
    raw = override(raw, set_ or [])
    if print_settings:
        print(as_yaml(raw), end="")
        return
    does = engines.make_engine(engine, workers, address, cpus, gpus, memory, minutes, sbatch)
    budget = looks.budget(until_decided, max_seeds)
    run_comparison(raw, out, does, as_json, command=command_line(), max_seeds=budget)


def command_line() -> str:
    """Return the command as the user typed it."""
    return shlex.join(["lupi", *sys.argv[1:]])


def run_comparison(
    raw: dict[str, Any],
    out: Path | None,
    engine: "Engine",
    as_json: bool,
    command: str,
    max_seeds: int | None = None,
) -> None:
    """Run a comparison from its raw settings and print its verdict.

    With `max_seeds` it goes on until it is decided, or has so many seeds.
    """
    from lupi.comparison.phases import phases

    plan = prepared_plan(raw, max_seeds)
    folder = out or Path("runs") / plan.settings.name
    with resumable():
        for phase in phases(plan, folder):
            if phase.is_tuned and plan.until_decided:
                looks.say_what_is_open(plan, phase, folder)
            do_runs(phase, folder, engine)
    if plan.until_decided:
        looks.say_how_it_ended(folder)
    summary = print_summary(folder, as_json, command)
    if plan.settings.task["name"] != "translation":  # whose student is used by `lupi translate`
        say(f"to ship a student: lupi export {folder} --out FOLDER")
    if n_missing := summary.n_planned - summary.n_finished:
        say(f"[red]{n_missing} of {summary.n_planned} runs have no result[/]: {RUN_AGAIN}")
        raise typer.Exit(1)


def prepared_plan(raw: dict[str, Any], max_seeds: int | None = None) -> "Plan":
    """Check the settings of a comparison, decode its images, say what was read, list its runs."""
    from lupi.comparison.plan import check, make_plan
    from lupi.comparison.settings import ComparisonSettings
    from lupi.evidence.planning import too_few_seeds

    settings = ComparisonSettings.parse(raw, "")
    check(settings)
    with resumable():
        prepare_data(settings.task)
    plan = make_plan(settings, max_seeds)
    seeds = {planned.seed for planned, _ in plan.runs}
    few = too_few_seeds(plan.arms, len(settings.sizes), len(seeds), plan.looks)
    say_facts(plan.facts)
    for warning in [*plan.warnings, *few]:
        say(f"[yellow]warning:[/] {escape(warning)}")
    return plan


def do_runs(
    plan: "Plan",
    folder: Path,
    engine: "Engine",
    pilot: "Callable[[PlannedRun], bool] | None" = None,
) -> None:
    """Do what a plan lacks, its trials until it is tuned, under a live table.

    With `pilot`, only the runs that it names are done, and no test score is shown.
    """
    from lupi.cli.live import LiveTable
    from lupi.comparison.phases import opened
    from lupi.records import read_comparison

    with opened(plan, folder) as jobs:
        record = read_comparison(folder)
        if pilot is not None:
            record = replace(record, runs=[run for run in record.runs if pilot(run.plan)])
        if plan.is_tuned:
            ids = {run.plan.run_id for run in record.runs}
            jobs = [job for job in jobs if job.run_id in ids]
        say(f"{_work(plan, record, len(jobs))}, {escape(engine.about)}, in {folder}")
        split = "test" if plan.is_tuned and pilot is None else "val"
        table = LiveTable(record, split, trials=not plan.is_tuned)
        table.follow(engine.execute(jobs))


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
