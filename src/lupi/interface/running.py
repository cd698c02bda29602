"""Run a comparison from its settings to its verdict, and print its progress."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from lupi.comparison.jobs import Engine
from lupi.comparison.phases import confirmation, open_records, phases, read_record
from lupi.comparison.plan import Plan, check_settings, make_plan
from lupi.comparison.settings import ComparisonSettings
from lupi.files import read_set_aside
from lupi.interface.callbacks import Callback, TensorBoardCurves, notify
from lupi.interface.console import (
    prepare_data,
    print_facts,
    print_message,
    print_set_aside,
    print_warning,
    progress_bar,
    time_text,
)
from lupi.interface.progress import LiveTable
from lupi.interface.result import Comparison
from lupi.loaders.frozen import heard_by
from lupi.records import (
    CONFIRMATION,
    ComparisonRecord,
    PlannedRun,
    default_folder,
    read_comparison,
)
from lupi.verdict.planning import too_few_seeds
from lupi.verdict.summary import open_questions, seconds_of
from lupi.verdict.units import count

DEFAULT_BUDGET = 30
"""Most seeds of a comparison that runs until it is decided, unless the user says how many."""


def run_comparison(
    raw: dict[str, Any],
    folder: Path | None,
    engine: Engine,
    max_seeds: int | None = None,
    command: str | None = None,
    callback: Callback | None = None,
    tensorboard: bool = False,
    confirm: bool = False,
) -> Comparison:
    """Execute the rest of a comparison, write its report, and return the result.

    Args:
        raw: Settings of the comparison.
        folder: Folder of the records; by default runs/NAME.
        engine: Engine that executes the runs.
        max_seeds: Add seeds until every question has an answer, up to this number.
        command: Command that repeats the comparison, for the report.
        callback: Called with the events of runs.
        tensorboard: Write learning curves for TensorBoard, instead of a callback.
        confirm: Run fresh seeds for the arm that helps and its controls.
    """
    plan = prepare_plan(raw, max_seeds)
    folder = folder or default_folder(plan.settings.name)
    if tensorboard:
        callback = TensorBoardCurves(folder)
    execute_plan(plan, folder, engine, callback)
    if confirm:
        _confirm(plan, folder, engine, callback)
    comparison = Comparison(folder)
    comparison.report(command=command)
    return comparison


def execute_plan(
    plan: Plan, folder: Path, engine: Engine, callback: Callback | None = None
) -> None:
    """Execute the missing trials and runs of a plan, phase by phase."""
    for phase in phases(plan, folder):
        if phase.is_tuned and plan.until_decided:
            _print_open_questions(plan, phase, folder)
        execute_runs(phase, folder, engine, callback=callback)
    if plan.until_decided:
        _print_ending(folder)


def _confirm(plan: Plan, folder: Path, engine: Engine, callback: Callback | None) -> None:
    """Run fresh seeds for the arm that helps and its controls, if the comparison is finished."""
    if not Comparison(folder).is_complete:
        print_message("nothing is confirmed before all runs have a result")
    elif (fresh := confirmation(plan, folder)) is None:
        print_message("there is nothing to confirm: no arm helps")
    else:
        execute_runs(fresh, folder / CONFIRMATION, engine, callback=callback)


def prepare_plan(raw: dict[str, Any], max_seeds: int | None = None) -> Plan:
    """Check settings, decode images, print facts about the data, and return the plan."""
    settings = ComparisonSettings.parse(raw, "")
    check_settings(settings)
    prepare_data(settings.task)
    with progress_bar("computing features of a pretrained network") as show, heard_by(show):
        plan = make_plan(settings, max_seeds)
    seeds = {planned.seed for planned, _ in plan.runs}
    few = too_few_seeds(plan.arms, len(seeds), plan.looks)
    print_facts(plan.facts)
    for warning in [*plan.warnings, *few]:
        print_warning(warning)
    return plan


def execute_runs(
    plan: Plan,
    folder: Path,
    engine: Engine,
    pilot: Callable[[PlannedRun], bool] | None = None,
    callback: Callback | None = None,
) -> None:
    """Execute the missing runs of a plan (trials until it is tuned) with a live table.

    With `pilot`, only the runs for which it returns True are executed, and no test score is shown.
    """
    kept = read_set_aside(folder)
    with open_records(plan, folder) as jobs:
        record = read_comparison(folder)
        if pilot is not None:
            record = replace(record, runs=[run for run in record.runs if pilot(run.plan)])
        if plan.is_tuned:
            ids = {run.plan.run_id for run in record.runs}
            jobs = [job for job in jobs if job.run_id in ids]
        work = _describe_work(plan, record, len(jobs))
        print_message(f"{work}, {engine.about}, in {folder}")
        split = "test" if plan.is_tuned and pilot is None else "val"
        table = LiveTable(record, split, trials=not plan.is_tuned)
        events = engine.execute(jobs)
        if callback is not None:
            every = record.runs if plan.is_tuned else record.trials
            events = notify(events, {run.plan.run_id: run.plan for run in every}, callback)
        table.follow(events)
    print_set_aside(folder, kept)


def _describe_work(plan: Plan, record: ComparisonRecord, n_jobs: int) -> str:
    if plan.is_tuned:
        sizes = {run.plan.size for run in record.runs}
        seeds = {run.plan.seed for run in record.runs}
        return (
            f"{count(len(plan.arms), 'arm')} x {count(len(sizes), 'size')} x "
            f"{count(len(seeds), 'seed')}: "
            f"{n_jobs} of {len(record.runs)} runs to do"
        )
    first = plan.candidates[0]
    return (
        f"tuning: {len(plan.candidates)} candidates x {len(first.seeds)} seeds at "
        f"n = {first.size}: {n_jobs} of {len(plan.trials)} trials to do"
    )


def _print_open_questions(plan: Plan, phase: Plan, folder: Path) -> None:
    """Print which questions the next look is for, and how long it may take."""
    n_seeds = max(Counter((run.arm, run.size) for run, _ in phase.runs).values())
    record = read_record(phase, folder)
    done = {run.plan.run_id for run in record.finished}
    if not done:
        print_message(f"first look at {n_seeds} seeds")
        return
    now = [run for run, _ in phase.runs if run.run_id not in done]
    if not now:
        return
    cells = {(run.arm, run.size) for run in now}
    rest = [r for r, _ in plan.runs if r.run_id not in done and (r.arm, r.size) in cells]
    named = ", ".join(f"{arm} at n = {size}" for arm, size in open_questions(record))
    print_message(
        f"open: {named}; on to {n_seeds} seeds: {len(now)} runs, "
        f"{time_text(seconds_of(record, now))} of one worker; at most {len(rest)} runs, "
        f"{time_text(seconds_of(record, rest))}, if nothing is decided before the budget is used up"
    )


def _print_ending(folder: Path) -> None:
    """Print whether every question has an answer, or the budget of seeds is used up."""
    record = read_comparison(folder)
    n_seeds = max(Counter((run.plan.arm, run.plan.size) for run in record.runs).values())
    named = ", ".join(f"{arm} at n = {size}" for arm, size in open_questions(record))
    if named:
        print_message(f"the budget of {n_seeds} seeds is used up; without an answer: {named}")
    else:
        print_message(f"every question has an answer, with {n_seeds} seeds or fewer")
