"""Execute a comparison, or the rest of it: the trials of tuning first, if any, then the runs."""

import contextlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from filelock import Timeout

from lupi.comparison.jobs import Job
from lupi.comparison.plan import Plan
from lupi.comparison.tuning import with_changes
from lupi.errors import LupiError
from lupi.files import DamagedRecordError, locked, read_json, require_utf8, set_aside
from lupi.permission import allowed_names
from lupi.records import (
    CONFIRMATION,
    ComparisonRecord,
    Looks,
    PlannedRun,
    read_comparison,
    read_runs,
    write_comparison,
)
from lupi.verdict.planning import FIRST_SHARE
from lupi.verdict.roles import controls
from lupi.verdict.statistics import seeds_needed
from lupi.verdict.summary import choose, find_winner, open_cells

FIRST_FRESH_SEED = 20_000
"""First seed of a confirmation: none of the comparison's and of its trials'."""


@contextlib.contextmanager
def open_records(plan: Plan, folder: Path) -> Iterator[list[Job]]:
    """Lock `folder`, record the plan there, and yield the runs without a result.

    For a plan that is still to be tuned, these are the trials.
    """
    with _exclusive(folder):
        looks = _looks(plan, folder)
        _keep_if_damaged(folder / "comparison.json")
        write_comparison(
            folder,
            plan.settings.resolved(),
            plan.arms,
            plan.metric,
            [planned for planned, _ in plan.runs],
            plan.warnings,
            plan.candidates,
            plan.design,
            looks,
            plan.facts,
        )
        yield missing_jobs(plan, folder)


def _keep_if_damaged(path: Path) -> None:
    """Keep a damaged comparison.json, before it is written anew."""
    try:
        read_json(path)
    except DamagedRecordError as error:
        if path.exists():
            set_aside([path], path.parent, path.name, str(error))


@contextlib.contextmanager
def _exclusive(folder: Path) -> Iterator[None]:
    """Create a folder and lock it."""
    require_utf8(folder)
    with contextlib.ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locked(folder, timeout=0))
        except Timeout:
            raise LupiError(
                f"another lupi is at work in {folder}; wait for it to end, or use another --out"
            ) from None
        except OSError as error:
            raise LupiError(f"--out: {folder} can't be used: {error.strerror}") from None
        yield


def _looks(plan: Plan, folder: Path) -> Looks | None:
    """Return the looks of a plan, preceded by those of an earlier plan that already took place."""
    if plan.looks is None or not (folder / "comparison.json").exists():
        return plan.looks
    try:
        record = read_comparison(folder)
    except DamagedRecordError:  # it is written anew, and the runs are still there
        return plan.looks
    counts = Counter((run.plan.arm, run.plan.size) for run in record.finished)
    return plan.looks.after(record.looks, max(counts.values(), default=0))


def missing_jobs(plan: Plan, folder: Path) -> list[Job]:
    """Return the runs of a plan (trials until it is tuned) that have no result in `folder`."""
    record = read_comparison(folder)
    runs, records = (plan.runs, record.runs) if plan.is_tuned else (plan.trials, record.trials)
    finished = {run.plan.run_id for run in records if run.result is not None}
    jobs = {
        planned.run_id: Job(
            planned.run_id, run.resolved(), folder / planned.run_id, allowed_names()
        )
        for planned, run in runs
        if planned.run_id not in finished
    }
    return list(jobs.values())


def phases(plan: Plan, folder: Path) -> Iterator[Plan]:
    """Yield what to execute next: the plan if trials are missing, then the tuned plan.

    A plan that runs until it is decided is yielded look by look, with the runs of each look. The
    caller must execute each phase before asking for the next.
    """
    tuned = tune(plan, folder)
    if tuned is None:
        yield plan
        tuned = tune(plan, folder)
    if tuned is None:
        raise LupiError(
            f"tuning needs the result of every trial; without one: {_without_result(plan, folder)}."
            " failure.txt in their folders says why; narrow the arm's `search` or try again"
        )
    if tuned.until_decided:
        yield from _look_by_look(tuned, folder)
    else:
        yield tuned


def _look_by_look(plan: Plan, folder: Path) -> Iterator[Plan]:
    """Yield the runs of each look for the questions that are still open.

    What is open depends on results only, so a comparison that was killed continues as if it had not
    been. Looks whose runs are all finished are not yielded again.
    """
    looks = _looks(plan, folder)
    assert looks is not None
    seeds = list(dict.fromkeys(planned.seed for planned, _ in plan.runs))
    wanted = {(planned.arm, planned.size) for planned, _ in plan.runs}
    taken: set[tuple[str, int, int]] = set()
    for n_seeds in looks.counts:
        taken |= {(arm, size, seed) for arm, size in wanted for seed in seeds[:n_seeds]}
        runs = [
            (planned, run)
            for planned, run in plan.runs
            if (planned.arm, planned.size, planned.seed) in taken
        ]
        phase = replace(plan, runs=runs, looks=looks)
        is_missing = len(read_record(phase, folder).finished) < len(runs)
        if is_missing:
            yield phase
        wanted &= open_cells(read_record(phase, folder))
        if not wanted:
            break
    if not is_missing:
        yield phase  # nothing to execute, but the record must list all these runs


def confirmation(plan: Plan, folder: Path) -> Plan | None:
    """Return the plan of fresh seeds for the arm that helps and its controls; None if none helps.

    It has their settings, at the sizes of the headline, and as many seeds as the comparison. It is
    recorded in a folder of its own, so the comparison is never judged on its seeds.
    """
    record = read_comparison(folder)
    winner, tuned = find_winner(record), tune(plan, folder)
    if winner is None or tuned is None:
        return None
    name, sizes = winner
    (arm,) = [arm for arm in record.arms if arm.name == name]
    arms = [arm, *controls(arm, record.arms)]
    names = [arm.name for arm in arms]
    n_seeds = len({run.plan.seed for run in record.runs if run.plan.arm == name})
    seeds = range(FIRST_FRESH_SEED, FIRST_FRESH_SEED + max(n_seeds, seeds_needed(FIRST_SHARE)))
    given = {
        (planned.arm, planned.size): run
        for planned, run in tuned.runs
        if planned.arm in names and planned.size in sizes
    }
    runs = []
    for seed in seeds:
        for (of, size), run in given.items():
            fresh = run.model_copy(update={"seed": seed})
            runs.append((PlannedRun(fresh.run_id, of, size, seed), fresh))
    questions = (f"{name}@mean",) if len(sizes) > 1 else ()
    settings = {"name": f"{plan.settings.name}-{CONFIRMATION}", "questions": questions}
    return replace(
        tuned,
        settings=plan.settings.model_copy(update=settings),
        arms=[arm for arm in plan.arms if arm.name in names],
        runs=runs,
        candidates=[candidate for candidate in tuned.candidates if candidate.arm in names],
        looks=Looks((len(seeds),)),
        until_decided=False,
    )


def read_record(plan: Plan, folder: Path) -> ComparisonRecord:
    """Return the records of the runs of a plan, whatever comparison.json says."""
    runs = read_runs(folder, (planned for planned, _ in plan.runs), warnings=[])
    return ComparisonRecord(
        folder,
        plan.settings.resolved(),
        plan.arms,
        plan.metric,
        runs,
        design=plan.design,
        looks=plan.looks,
    )


def tune(plan: Plan, folder: Path) -> Plan | None:
    """Return the plan with the settings chosen by its trials; None if a trial has no result."""
    if plan.is_tuned:
        return plan
    trials = read_runs(folder, (planned for planned, _ in plan.trials), warnings=[])
    if any(trial.result is None for trial in trials):
        return None
    candidates = choose(plan.candidates, trials, plan.metric)
    changes = {c.arm: c.changes for c in candidates if c.chosen}
    runs = []
    for planned, given in plan.runs:
        # A control without trials gets the settings chosen for the arm with real x*.
        tried = planned.arm if planned.arm in changes else planned.arm.rpartition("/")[0]
        run = with_changes(planned.arm, given, changes.get(tried, {}))
        runs.append((PlannedRun(run.run_id, planned.arm, planned.size, planned.seed), run))
    return replace(plan, runs=runs, candidates=candidates)


def _without_result(plan: Plan, folder: Path) -> str:
    trials = read_runs(folder, (planned for planned, _ in plan.trials), warnings=[])
    missing = [trial.plan for trial in trials if trial.result is None]
    return ", ".join(f"{trial.arm} seed {trial.seed} ({trial.run_id})" for trial in missing)
