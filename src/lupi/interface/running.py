"""A comparison from its settings to its verdict, and what the user sees on the way."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.markup import escape

from lupi.comparison.jobs import Engine
from lupi.comparison.phases import opened, phases
from lupi.comparison.plan import Plan, check, make_plan
from lupi.comparison.settings import ComparisonSettings
from lupi.evidence.planning import too_few_seeds
from lupi.interface.callbacks import Callback, TensorBoardCurves, told
from lupi.interface.console import prepare_data, say, say_facts
from lupi.interface.looks import say_how_it_ended, say_what_is_open
from lupi.interface.progress import LiveTable
from lupi.interface.result import Comparison
from lupi.records import ComparisonRecord, PlannedRun, default_folder, read_comparison


def run_comparison(
    raw: dict[str, Any],
    folder: Path | None,
    engine: Engine,
    max_seeds: int | None = None,
    command: str | None = None,
    callback: Callback | None = None,
    tensorboard: bool = False,
) -> Comparison:
    """Do what is left of a comparison, write its page, and return what came out.

    Args:
        raw: settings of the comparison.
        folder: of the records; by default runs/NAME.
        engine: does the runs.
        max_seeds: go on until every question has an answer, or there are so many seeds.
        command: what repeats the comparison, for the page.
        callback: is told what happens to runs.
        tensorboard: write learning curves for TensorBoard; instead of a callback.
    """
    plan = prepared_plan(raw, max_seeds)
    folder = folder or default_folder(plan.settings.name)
    if tensorboard:
        callback = TensorBoardCurves(folder)
        say(f"learning curves: tensorboard --logdir {escape(str(callback.folder))}")
    for phase in phases(plan, folder):
        if phase.is_tuned and plan.until_decided:
            say_what_is_open(plan, phase, folder)
        do_runs(phase, folder, engine, callback=callback)
    if plan.until_decided:
        say_how_it_ended(folder)
    comparison = Comparison(folder)
    comparison.report(command=command)
    return comparison


def prepared_plan(raw: dict[str, Any], max_seeds: int | None = None) -> Plan:
    """Check the settings of a comparison, decode its images, say what was read, list its runs."""
    settings = ComparisonSettings.parse(raw, "")
    check(settings)
    prepare_data(settings.task)
    plan = make_plan(settings, max_seeds)
    seeds = {planned.seed for planned, _ in plan.runs}
    few = too_few_seeds(plan.arms, len(settings.sizes), len(seeds), plan.looks)
    say_facts(plan.facts)
    for warning in [*plan.warnings, *few]:
        say(f"[yellow]warning:[/] {escape(warning)}")
    return plan


def do_runs(
    plan: Plan,
    folder: Path,
    engine: Engine,
    pilot: Callable[[PlannedRun], bool] | None = None,
    callback: Callback | None = None,
) -> None:
    """Do what a plan lacks, its trials until it is tuned, under a live table.

    With `pilot`, only the runs that it names are done, and no test score is shown.
    """
    with opened(plan, folder) as jobs:
        record = read_comparison(folder)
        if pilot is not None:
            record = replace(record, runs=[run for run in record.runs if pilot(run.plan)])
        if plan.is_tuned:
            ids = {run.plan.run_id for run in record.runs}
            jobs = [job for job in jobs if job.run_id in ids]
        say(f"{_work(plan, record, len(jobs))}, {escape(engine.about)}, in {escape(str(folder))}")
        split = "test" if plan.is_tuned and pilot is None else "val"
        table = LiveTable(record, split, trials=not plan.is_tuned)
        events = engine.execute(jobs)
        if callback is not None:
            every = record.runs if plan.is_tuned else record.trials
            events = told(events, {run.plan.run_id: run.plan for run in every}, callback)
        table.follow(events)


def _work(plan: Plan, record: ComparisonRecord, n_jobs: int) -> str:
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
