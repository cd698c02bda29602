"""From the records of a comparison to its summary, to the runs it needs, and to tuned settings."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from lupi.design import Looks
from lupi.records import Candidate, ComparisonRecord, Metric, PlannedRun, RunRecord
from lupi.verdict.cautions import cautions, tuning_cautions
from lupi.verdict.results import Subgroup, Summary, Trial, Tuning, Verdict
from lupi.verdict.roles import Key, controls, find_reference, is_candidate, parse_questions
from lupi.verdict.rule import Rule, judge_arms
from lupi.verdict.scores import Scores, number_at, read_scores
from lupi.verdict.statistics import ALPHA
from lupi.verdict.units import count
from lupi.verdict.words import find_subject, statement

IN_TEST = "test/"
"""Start of the names of subgroups of test rows, in results."""
OPEN: tuple[Verdict, ...] = (
    "undecided",
    "no detectable difference",
    "underpowered",
    "better than plain only",
    "not compared",
)
"""Verdicts that more seeds may change. All others are final; a collapsed arm stays collapsed."""


def summarise(record: ComparisonRecord) -> Summary:
    """Judge every arm of a comparison, finished or not."""
    reference = find_reference(record.arms)
    scores = read_scores(record)
    tuning = judge_tuning(record)
    rule = rule_of(record, len(scores.seeds))
    rivals = {
        arm.name: [control.name for control in controls(arm, record.arms)] for arm in record.arms
    }
    arms = judge_arms(scores, record.arms, rivals, rule)
    confirmation = None if record.confirmation is None else summarise(record.confirmation)
    failed = tuple(run.plan.run_id for run in record.runs if run.failure is not None)
    return Summary(
        comparison=str(record.settings.get("name") or record.folder.name),
        statement=statement(
            arms,
            record.metric,
            reference.name,
            rule,
            _progress(record, scores, rule.looks),
            confirmation=confirmation,
        ),
        metric=record.metric.name,
        higher_is_better=record.metric.higher_is_better,
        reference=reference.name,
        alpha=ALPHA,
        trivial=scores.trivial,
        sizes=scores.sizes,
        seeds=scores.seeds,
        n_planned=len(record.runs),
        n_finished=sum(len(runs.scores) for runs in scores.runs.values()),
        failed=failed,
        warnings=(*cautions(record, scores, arms, rule, failed), *tuning_cautions(tuning)),
        arms=arms,
        tuning=tuning,
        looks=rule.looks.counts,
        confirmation=confirmation,
        subgroups=tuple(
            Subgroup(column, name, judge_arms(scores, record.arms, rivals, rule))
            for column, name, scores in _subgroups(record)
        ),
    )


def _subgroups(record: ComparisonRecord) -> Iterator[tuple[str, str, Scores]]:
    """Yield the column, the name and the scores of each subgroup of the test rows."""
    column = str(record.settings.get("task", {}).get("by"))
    names = dict.fromkeys(
        name for run in record.finished for name in (run.result or {}).get("metrics", {})
    )
    for name in names:
        if name.startswith(IN_TEST):
            yield column, name.removeprefix(IN_TEST), read_scores(record, name)


def _progress(record: ComparisonRecord, scores: Scores, looks: Looks) -> str:
    """Return why a verdict is preliminary, or nothing."""
    n_finished = sum(len(runs.scores) for runs in scores.runs.values())
    if any(run.result is None and run.failure is None for run in record.runs):
        return f"{n_finished} of {count(len(record.runs), 'run')}"
    return preliminary(scores.n_seen, looks)


def preliminary(n_seeds: int, looks: Looks) -> str:
    """Return `5 of 8 seeds` before the first planned look, otherwise nothing."""
    return f"{n_seeds} of {looks.counts[0]} seeds" if n_seeds < looks.counts[0] else ""


def rule_of(record: ComparisonRecord, n_seeds: int) -> Rule:
    """Return the rule for a comparison, with the margin from its settings, if any."""
    return Rule(
        metric=record.metric.name,
        looks=record.looks or Looks((n_seeds,)),
        design=record.design,
        margin=number_at(record.settings, "margin"),
        order=_order(record),
    )


def _order(record: ComparisonRecord) -> tuple[Key, ...]:
    """Return the planned order of questions."""
    given = record.settings.get("questions")
    arms = [arm.name for arm in record.arms if is_candidate(arm)]
    sizes = sorted({run.plan.size for run in record.runs})
    return tuple(parse_questions(given, arms, sizes)) if isinstance(given, list) else ()


def find_winner(record: ComparisonRecord) -> tuple[str, tuple[int, ...]] | None:
    """Return the arm of which the headline says that it helps, and the sizes it says this of."""
    found = find_subject(summarise(record).arms)
    if found is None or found.word != "helps":
        return None
    return found.arm.name, found.cell.sizes or (found.cell.size,)


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


# Tuning


def choose(
    candidates: Sequence[Candidate], trials: Iterable[RunRecord], metric: Metric
) -> list[Candidate]:
    """Mark the best candidate of each arm by the mean over its trials; ties go to the first.

    A candidate with a trial without a score ranks last.
    """
    results = _results(trials)
    sign = 1 if metric.higher_is_better else -1
    best: dict[str, tuple[float, int]] = {}
    for candidate in candidates:
        scores = _scores(candidate, results, metric)
        is_whole = len(scores) == len(candidate.run_ids)
        score = sign * fmean(scores) if is_whole else -math.inf
        if candidate.arm not in best or score > best[candidate.arm][0]:
            best[candidate.arm] = score, candidate.number
    return [replace(c, chosen=c.number == best[c.arm][1]) for c in candidates]


def judge_tuning(record: ComparisonRecord) -> Tuning | None:
    """Return how the settings of a comparison were chosen, or None if unknown."""
    settings = record.settings.get("tuning")
    if isinstance(settings, str):
        return Tuning(note=settings, shared=_with_settings_of_their_arm(record))
    if not record.candidates:
        return None
    results = _results(record.trials)
    trials = []
    for candidate in record.candidates:
        scores = _scores(candidate, results, record.metric)
        trials.append(
            Trial(
                arm=candidate.arm,
                number=candidate.number,
                changes=candidate.changes,
                n_planned=len(candidate.run_ids),
                n_finished=len(scores),
                score=fmean(scores) if scores else None,
                chosen=candidate.chosen,
            )
        )
    first = record.candidates[0]
    controls = settings.get("controls") if isinstance(settings, Mapping) else None
    is_shared = controls == "shared"
    shared = tuple(arm.name for arm in record.arms if is_shared and arm.control != "real")
    return Tuning(None, first.size, len(first.seeds), shared, tuple(trials))


def _with_settings_of_their_arm(record: ComparisonRecord) -> tuple[str, ...]:
    """Return the controls to which the settings file gives no settings of their own."""
    given = record.settings.get("arms")
    found = []
    for arm in record.arms:
        if arm.control == "real" or not isinstance(given, Mapping):
            continue
        name = arm.name.removesuffix(f"/{arm.control}")
        own = given.get(name) or given.get(name.rpartition("@")[0])
        if isinstance(own, Mapping) and not isinstance(own.get("controls"), Mapping):
            found.append(arm.name)
    return tuple(found)


def _results(trials: Iterable[RunRecord]) -> dict[str, Any]:
    return {trial.plan.run_id: trial.result for trial in trials}


def _scores(candidate: Candidate, results: Mapping[str, Any], metric: Metric) -> list[float]:
    """Return the available validation scores. A diverged trial has the trivial score."""
    found = (
        number_at(results.get(run_id), "metrics", "val", metric.name)
        for run_id in candidate.run_ids
    )
    return [score for score in found if score is not None]
