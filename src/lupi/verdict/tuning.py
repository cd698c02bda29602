"""The candidates of tuning, their validation scores, and the choice."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from lupi.records import Candidate, ComparisonRecord, Metric, RunRecord
from lupi.verdict.results import Trial, Tuning
from lupi.verdict.scores import number_at


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
