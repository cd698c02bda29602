"""Choose the run of a comparison to export."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from lupi.errors import LupiError
from lupi.records import (
    STUDENT,
    ComparisonRecord,
    PlannedRun,
    RunRecord,
    find_run,
    read_comparison,
)
from lupi.settings import unknown_name
from lupi.verdict.results import Cell, Summary


class Judged(NamedTuple):
    """What a comparison found out about the arm of one of its runs, at the size of that run."""

    summary: Summary
    arm: str
    cell: Cell


class PickedRun(NamedTuple):
    """A finished run, and the reason for the choice."""

    folder: Path
    why: str
    judged: Judged | None = None
    """None if it is not part of a comparison."""


def pick_run(
    folder: Path, arm: str | None = None, size: int | None = None, seed: int | None = None
) -> PickedRun:
    """Return the run to export: from a comparison, the best on validation rows, never on test rows.

    The size is `size`, or the largest at which all arms have a student. The arm is `arm`, or the
    one with the best mean validation score (networks with real x*, no controls). The seed is
    `seed`, or the one with the best score.
    """
    wanted = {"--arm": arm, "--size": size, "--seed": seed}
    if not (folder / "comparison.json").exists():
        if given := [option for option, value in wanted.items() if value is not None]:
            raise LupiError(f"{given[0]} is for the folder of a comparison; {folder} is not one")
        only = find_run(folder)
        return PickedRun(only, str(only))
    record = read_comparison(folder)
    runs = _shippable(record, arm)
    metric, sign = record.metric.name, 1 if record.metric.higher_is_better else -1
    size = size if size is not None else _largest(runs)
    scores: dict[str, dict[int, tuple[float, RunRecord]]] = defaultdict(dict)
    for run in runs:
        if run.plan.size == size:
            scores[run.plan.arm][run.plan.seed] = (sign * _validation(run)[metric], run)
    if not scores:
        sizes = sorted({run.plan.size for run in runs})
        raise LupiError(f"--size: no student at n = {size}; there are {', '.join(map(str, sizes))}")
    best = max(scores, key=lambda name: fmean(score for score, _ in scores[name].values()))
    seeds = scores[best]
    if seed is not None and seed not in seeds:
        raise LupiError(f"--seed: {best} has no student of seed {seed} at n = {size}")
    chosen = max(seeds, key=lambda s: seeds[s][0]) if seed is None else seed
    score, run = seeds[chosen]
    rule = f"the best of {len(seeds)} seeds" if seed is None else "as requested"
    if arm is None:
        rule += f", and {best} the best of {len(scores)} arms"
    why = f"{best}, n = {size}, seed {chosen}: validation {metric} {sign * score:.4g}, {rule}"
    why += f" ({run.folder})"
    if run.result and run.result.get("collapsed"):
        why += "; collapsed: x* had no effect"
    if missing := len(record.runs) - len(record.finished):
        why += f"; {missing} of {len(record.runs)} runs are missing and may change the choice"
    judged = _judged(record, run.plan)
    return PickedRun(run.folder, f"{why}; verdict: {judged.cell.verdict}", judged)


def judge_run(folder: Path) -> Judged | None:
    """Return what its comparison found out about a run; None if it is not part of one."""
    try:
        record = read_comparison(folder.parent)
        plan = next((run.plan for run in record.finished if run.folder == folder), None)
        return None if plan is None else _judged(record, plan)
    except LupiError:
        return None


def _judged(record: ComparisonRecord, plan: PlannedRun) -> Judged:
    from lupi.verdict.summary import summarise  # waits for scipy, and most predictions do not

    summary = summarise(record)
    cells = next(arm.cells for arm in summary.arms if arm.name == plan.arm)
    return Judged(summary, plan.arm, next(cell for cell in cells if cell.size == plan.size))


def _largest(runs: Sequence[RunRecord]) -> int:
    """Return the largest size common to all arms, or the largest of any."""
    sizes = [
        {run.plan.size for run in runs if run.plan.arm == arm} for arm in {r.plan.arm for r in runs}
    ]
    return max(set.intersection(*sizes) or set.union(*sizes))


def _shippable(record: ComparisonRecord, arm: str | None) -> list[RunRecord]:
    """Return the runs with a student of one arm, or of all arms that can be exported."""
    arms = {a.name: a for a in record.arms}
    if arm is not None:
        if arm not in arms:
            raise LupiError(f"--arm: {unknown_name('arm', arm, list(arms))}")
        if arms[arm].classical or arms[arm].sees_xstar_at_test:
            reason = "is not a network" if arms[arm].classical else "can't predict without x*"
            raise LupiError(f"--arm: {arm} {reason}, so there is no student to ship")
    names = {
        a.name
        for a in record.arms
        if a.name == arm
        or (arm is None and a.control == "real" and not (a.classical or a.sees_xstar_at_test))
    }
    metric = record.metric.name
    runs = [
        run
        for run in record.finished
        if run.plan.arm in names and metric in _validation(run) and (run.folder / STUDENT).exists()
    ]
    if not runs:
        raise LupiError(
            f"{record.folder} has no finished run{f' of {arm}' if arm else ''} with a student yet: "
            "run the same `lupi compare` command to resume"
        )
    return runs


def _validation(run: RunRecord) -> dict[str, Any]:
    scores: dict[str, Any] = (run.result or {}).get("metrics", {}).get("val", {})
    return scores
