"""From the records of a comparison to its summary."""

import json
from dataclasses import asdict
from typing import Any

from lupi.design import Looks
from lupi.records import ComparisonRecord
from lupi.verdict.answer import ArmSummary, Cell, Difference, LabelSaving, Reach, Summary, Verdict
from lupi.verdict.judging import Rule, judge_arms
from lupi.verdict.roles import controls, find_reference
from lupi.verdict.scores import number_at, read_scores
from lupi.verdict.tuning import judge_tuning
from lupi.verdict.verdict import ALPHA
from lupi.verdict.words.cautions import cautions, tuning_cautions
from lupi.verdict.words.headline import headline

__all__ = [
    "ArmSummary",
    "Cell",
    "Difference",
    "LabelSaving",
    "Reach",
    "Summary",
    "Verdict",
    "summarise",
    "to_json",
]


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
    failed = tuple(run.plan.run_id for run in record.runs if run.failure is not None)
    return Summary(
        comparison=str(record.settings.get("name") or record.folder.name),
        headline=headline(arms, record.metric, reference.name, rule, len(record.runs)),
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
    )


def rule_of(record: ComparisonRecord, n_seeds: int) -> Rule:
    """Return the rule for a comparison, with the margin from its settings, if any."""
    return Rule(
        metric=record.metric.name,
        looks=record.looks or Looks((n_seeds,)),
        design=record.design,
        margin=number_at(record.settings, "margin"),
    )


def to_json(summary: Summary) -> dict[str, Any]:
    """Return the summary in plain JSON types; non-finite numbers are an error."""
    document: dict[str, Any] = json.loads(json.dumps(asdict(summary), allow_nan=False))
    return document
