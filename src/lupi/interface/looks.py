"""Messages of a comparison that adds seeds until it is decided."""

from collections import Counter
from pathlib import Path

from rich.markup import escape

from lupi.comparison.phases import record_of
from lupi.comparison.plan import Plan
from lupi.evidence.open_questions import open_questions, seconds_of
from lupi.interface.console import say, time_text
from lupi.records import read_comparison

DEFAULT_BUDGET = 30
"""Seeds at most, unless the user says how many."""


def say_what_is_open(plan: Plan, phase: Plan, folder: Path) -> None:
    """Tell, before the runs of a look, which questions it is for and how long it may take."""
    n_seeds = max(Counter((run.arm, run.size) for run, _ in phase.runs).values())
    record = record_of(phase, folder)
    done = {run.plan.run_id for run in record.finished}
    if not done:
        say(f"first look at {n_seeds} seeds")
        return
    now = [run for run, _ in phase.runs if run.run_id not in done]
    if not now:
        return
    cells = {(run.arm, run.size) for run in now}
    rest = [r for r, _ in plan.runs if r.run_id not in done and (r.arm, r.size) in cells]
    named = ", ".join(f"{arm} at n = {size}" for arm, size in open_questions(record))
    say(
        f"open: {escape(named)}; on to {n_seeds} seeds: {len(now)} runs, "
        f"{time_text(seconds_of(record, now))} of one worker; at most {len(rest)} runs, "
        f"{time_text(seconds_of(record, rest))}, if nothing is decided before the budget is out"
    )


def say_how_it_ended(folder: Path) -> None:
    """Tell whether every question has an answer, or the budget is out."""
    record = read_comparison(folder)
    n_seeds = max(Counter((run.plan.arm, run.plan.size) for run in record.runs).values())
    named = ", ".join(f"{arm} at n = {size}" for arm, size in open_questions(record))
    if named:
        say(f"the budget of {n_seeds} seeds is out; without an answer: {escape(named)}")
    else:
        say(f"every question has an answer, with {n_seeds} seeds or fewer")
