"""The open questions of a comparison, and the runs needed to answer them."""

from collections.abc import Iterable
from statistics import fmean

from lupi.records import ComparisonRecord, PlannedRun
from lupi.verdict.answer import Verdict
from lupi.verdict.roles import controls, is_candidate
from lupi.verdict.summary import summarise

OPEN: tuple[Verdict, ...] = (
    "no detectable difference",
    "underpowered",
    "better than plain only",
)
"""Verdicts that more seeds may change. All others are final; a collapsed arm stays collapsed."""


def open_questions(record: ComparisonRecord) -> list[tuple[str, int]]:
    """Return the arms with x* and sizes for which more seeds may give an answer."""
    return [
        (arm.name, cell.size)
        for arm in summarise(record).arms
        if is_candidate(arm)
        for cell in arm.cells
        if cell.verdict in OPEN
    ]


def open_cells(record: ComparisonRecord) -> set[tuple[str, int]]:
    """Return the arms and sizes that need more runs to answer the open questions.

    These are the arms with open questions and their controls, at the sizes of the questions and
    at the extra sizes of an arm, which the label-saving factor needs.
    """
    found: set[tuple[str, int]] = set()
    shared = _shared_sizes(record)
    own = {(run.plan.arm, run.plan.size) for run in record.runs if run.plan.size not in shared}
    by_name = {arm.name: arm for arm in record.arms}
    for name, size in open_questions(record):
        arms = {name, *(control.name for control in controls(by_name[name], record.arms))}
        found |= {(arm, size) for arm in arms} | {cell for cell in own if cell[0] in arms}
    return found


def _shared_sizes(record: ComparisonRecord) -> set[int]:
    """Return the sizes common to all arms."""
    sizes = [
        {run.plan.size for run in record.runs if run.plan.arm == arm.name} for arm in record.arms
    ]
    return set.intersection(*sizes) if sizes else set()


def mean_seconds(record: ComparisonRecord) -> dict[tuple[str, int], float]:
    """Return the mean time of a run for each arm and size."""
    times: dict[tuple[str, int], list[float]] = {}
    for run in record.finished:
        rows, _ = run.metrics()
        seconds = sum(row.get("seconds", 0.0) for row in rows)
        times.setdefault((run.plan.arm, run.plan.size), []).append(seconds)
    return {cell: fmean(found) for cell, found in times.items()}


def seconds_of(record: ComparisonRecord, runs: Iterable[PlannedRun]) -> float:
    """Return the estimated time of these runs on one worker."""
    seconds = mean_seconds(record)
    return sum(seconds.get((run.arm, run.size), 0.0) for run in runs)
