"""From the records of a comparison to the answer: did x* help?"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from statistics import fmean
from typing import Any

from lupi.evidence.answer import (
    ArmSummary,
    Cell,
    Difference,
    LabelSaving,
    Reach,
    Summary,
    Word,
)
from lupi.evidence.cautions import cautions, tuning_cautions
from lupi.evidence.headline import headline
from lupi.evidence.labels import label_saving
from lupi.evidence.paired import mean_interval, paired_difference
from lupi.evidence.scores import Scores, read_scores
from lupi.evidence.tuning import judge_tuning
from lupi.evidence.verdict import ALPHA, Grounds, controls, find_reference, judge
from lupi.records import Arm, ComparisonRecord

__all__ = [
    "ArmSummary",
    "Cell",
    "Difference",
    "LabelSaving",
    "Reach",
    "Summary",
    "Word",
    "summarise",
    "to_json",
]


def summarise(record: ComparisonRecord) -> Summary:
    """Judge every arm of a comparison, finished or not."""
    reference = find_reference(record.arms)
    scores = read_scores(record)
    tuning = judge_tuning(record)
    arms = tuple(_judged(arm, record.arms, reference, scores) for arm in record.arms)
    failed = tuple(run.plan.run_id for run in record.runs if run.failure is not None)
    return Summary(
        comparison=str(record.settings.get("name") or record.folder.name),
        headline=headline(arms, record.metric, reference.name, len(record.runs)),
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
        warnings=(*cautions(record, scores, arms, failed), *tuning_cautions(tuning)),
        arms=arms,
        tuning=tuning,
    )


def to_json(summary: Summary) -> dict[str, Any]:
    """Return the summary in plain JSON types; a number JSON can't hold is an error."""
    document: dict[str, Any] = json.loads(json.dumps(asdict(summary), allow_nan=False))
    return document


def _judged(arm: Arm, arms: Sequence[Arm], reference: Arm, scores: Scores) -> ArmSummary:
    rivals = [control.name for control in controls(arm, arms)]
    grounds = [_grounds(arm.name, rivals, size, scores) for size in scores.sizes]
    words: list[tuple[Word, float | None]] = [("reference", None)] * len(grounds)
    if arm != reference:
        words = judge(grounds, reference.name)
    cells = []
    for size, at, (word, p_value) in zip(scores.sizes, grounds, words, strict=True):
        runs = scores.runs[arm.name, size]
        values = list(runs.scores.values())
        strongest = min(at.differences, key=lambda d: d.mean, default=None)
        cells.append(
            Cell(
                size=size,
                n_seeds=len(values),
                mean=fmean(values) if values else None,
                interval=mean_interval(values),
                n_diverged=runs.n_diverged,
                n_collapsed=runs.n_collapsed,
                n_missing=runs.n_missing,
                verdict=word,
                p_value=p_value,
                differences=at.differences,
                strongest=strongest.other if strongest else None,
                label_saving=_saving(arm, reference, size, scores) if arm != reference else None,
            )
        )
    return ArmSummary(
        name=arm.name,
        method=arm.method,
        control=arm.control,
        uses_xstar=arm.uses_xstar,
        sees_xstar_at_test=arm.sees_xstar_at_test,
        xstar_frac=arm.xstar_frac,
        family=arm.family,
        cells=tuple(cells),
        classical=arm.classical,
    )


def _grounds(arm: str, rivals: Sequence[str], size: int, scores: Scores) -> Grounds:
    common = {rival: scores.common_seeds((arm, size), (rival, size)) for rival in rivals}
    differences = (
        Difference(
            rival,
            *paired_difference(scores.gains(arm, size, seeds), scores.gains(rival, size, seeds)),
        )
        for rival, seeds in common.items()
        if seeds
    )
    return Grounds(
        differences=tuple(differences),
        n_pairs=min((len(seeds) for seeds in common.values()), default=0),
        collapsed=scores.runs[arm, size].collapsed,
    )


def _saving(arm: Arm, reference: Arm, size: int, scores: Scores) -> LabelSaving:
    """Hold the arm against the reference's curve, on the seeds that have all of it."""
    sizes = [n for n in scores.sizes if scores.runs[reference.name, n].scores]
    seeds = scores.common_seeds((arm.name, size), *((reference.name, n) for n in sizes))
    if not sizes or not seeds:
        return LabelSaving("unknown", None, None)
    curve = [scores.gains(reference.name, n, seeds) for n in sizes]  # (size, seed)
    table = list(zip(*curve, strict=True))  # (seed, size)
    return label_saving(sizes, table, scores.gains(arm.name, size, seeds), size)
