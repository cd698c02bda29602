"""From scores to judged arms, for lupi's own runs and for `lupi.judge`."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from lupi.design import Design, Looks
from lupi.records import Arm
from lupi.verdict.answer import ArmSummary, Cell, LabelSaving
from lupi.verdict.labels import label_saving
from lupi.verdict.roles import is_candidate
from lupi.verdict.scores import Scores
from lupi.verdict.statistics.paired import mean_interval, paired_differences
from lupi.verdict.statistics.sequential import SequentialTest
from lupi.verdict.units import default_margin
from lupi.verdict.verdict import Judged, Question, judge_family

Key = tuple[str, int]
"""An arm at a size."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule by which a comparison is judged."""

    metric: str
    looks: Looks
    design: Design | None = None
    margin: float | None = None
    """In the unit of the metric; None means its default."""

    def correlation(self, size: int) -> float:
        """Return the correlation between two seeds due to shared rows."""
        return 0.0 if self.design is None else self.design.correlation(size)


def judge_arms(
    scores: Scores, arms: Sequence[Arm], rivals: Mapping[str, Sequence[str]], rule: Rule
) -> tuple[ArmSummary, ...]:
    """Judge every arm at every size.

    Args:
        scores: Scores of all arms.
        arms: The arms, in the order of the result.
        rivals: Names of the arms to compare each arm with, the reference first; empty for the
            reference itself.
        rule: The rule to judge by.
    """
    judged = judge_questions(scores, arms, rivals, rule)
    return tuple(
        ArmSummary(
            name=arm.name,
            method=arm.method,
            control=arm.control,
            uses_xstar=arm.uses_xstar,
            sees_xstar_at_test=arm.sees_xstar_at_test,
            xstar_frac=arm.xstar_frac,
            family=arm.family,
            cells=tuple(
                _cell((arm.name, size), judged, rivals, scores, rule) for size in scores.sizes
            ),
            classical=arm.classical,
        )
        for arm in arms
    )


def judge_questions(
    scores: Scores, arms: Sequence[Arm], rivals: Mapping[str, Sequence[str]], rule: Rule
) -> dict[Key, Judged]:
    """Judge every arm that has rivals, at every size with runs.

        All arms that can show that x* helps form one family, with all their sizes; every other arm
    is a separate family.
    """
    families: dict[str, dict[Key, Question]] = defaultdict(dict)
    for arm in arms:
        about_xstar = is_candidate(arm)
        for size in scores.sizes:
            if rivals[arm.name] and scores.runs[arm.name, size].is_planned:
                question = _question(arm.name, size, rivals, scores, rule, about_xstar)
                families["" if about_xstar else arm.name][arm.name, size] = question
    judged: dict[Key, Judged] = {}
    for questions in families.values():
        judged |= zip(questions, judge_family(list(questions.values())), strict=True)
    return judged


def _question(
    arm: str,
    size: int,
    rivals: Mapping[str, Sequence[str]],
    scores: Scores,
    rule: Rule,
    about_xstar: bool,
) -> Question:
    planned = [rival for rival in rivals[arm] if scores.runs[rival, size].is_planned]
    tests = {}
    for rival in planned:
        seeds = scores.common_seeds((arm, size), (rival, size))
        if seeds:
            gains = scores.gains(arm, size, seeds), scores.gains(rival, size, seeds)
            looks = rule.looks.reached(len(seeds))
            tests[rival] = SequentialTest(paired_differences(*gains), looks, rule.correlation(size))
    collapsed = scores.runs[arm, size].collapsed
    margin = _margin(rivals[arm][0], size, scores, rule)
    return Question(tests, len(planned), margin, about_xstar, collapsed)


def _margin(reference: str, size: int, scores: Scores, rule: Rule) -> float:
    if rule.margin is not None:
        return rule.margin
    plain = scores.runs[reference, size].scores.values()
    return default_margin(rule.metric, fmean(plain) if plain else 0.0)


def _cell(
    key: Key,
    judged: Mapping[Key, Judged],
    rivals: Mapping[str, Sequence[str]],
    scores: Scores,
    rule: Rule,
) -> Cell:
    arm, size = key
    runs = scores.runs[key]
    values = list(runs.scores.values())
    cell = Cell(
        size=size,
        n_seeds=len(values),
        mean=fmean(values) if values else None,
        interval=mean_interval(values),
        n_diverged=runs.n_diverged,
        n_collapsed=runs.n_collapsed,
        n_missing=runs.n_missing,
        verdict="reference" if runs.is_planned else "not run",
        scope=rule.design.scope(size) if rule.design else None,
        scores=dict(runs.scores),
        recorded={name: fmean(values) for name, values in runs.recorded.items()},
    )
    if key not in judged:
        return cell
    found, reference = judged[key], rivals[arm][0]
    saving, saving_strongest = (
        _saving(key, other, found, scores, rule) for other in (reference, found.strongest)
    )
    return replace(
        cell,
        verdict=found.verdict,
        p_value=next((d.p_value for d in found.differences if d.other == found.strongest), None),
        differences=found.differences,
        strongest=found.strongest,
        label_saving=saving,
        label_saving_strongest=None if found.strongest == reference else saving_strongest,
        margin=_margin(reference, size, scores, rule),
    )


def _saving(
    key: Key, other: str | None, found: Judged, scores: Scores, rule: Rule
) -> LabelSaving | None:
    """Compare an arm with the learning curve of another, on the seeds with complete curves."""
    if other is None:
        return None
    arm, size = key
    sizes = [n for n in scores.sizes if scores.runs[other, n].scores]
    seeds = scores.common_seeds(key, *((other, n) for n in sizes))
    if len(sizes) < 2 or not seeds:  # a curve needs two sizes
        return LabelSaving(other, "unknown", None, None)
    curve = np.stack([scores.gains(other, n, seeds) for n in sizes], axis=1)  # (seed, size)
    share = rule.looks.reached(len(seeds))[-1][1]
    saving = label_saving(
        other, sizes, curve, scores.gains(arm, size, seeds), size, share, rule.correlation(size)
    )
    interval = next((d.interval for d in found.differences if d.other == other), None)
    return saving if interval is None else _agreeing(saving, interval)


def _agreeing(saving: LabelSaving, interval: tuple[float | None, float | None]) -> LabelSaving:
    """Let the factor exclude 1 only if the difference at the same size excludes 0."""
    if saving.interval is None:
        return saving
    (low, high), (worst, best) = saving.interval, interval
    if worst is None or worst <= 0:
        low = min(low, 1.0)
    if high is not None and (best is None or best >= 0):
        high = max(high, 1.0)
    return replace(saving, interval=(low, high))
