"""The rule for verdicts: from scores to judged arms.

x* gets credit only if an arm beats *every* control. The first verdict that applies is given:

    not compared              no common seed with the reference
    collapsed                 at least half of the runs no longer depend on x*, whatever the scores
    helps                     better than every control
    hurts                     worse than every control
    worse than a control      worse than some of them, such as plain noise
    better than plain only    better than the reference, but not better than every control
    practically the same      every difference is smaller than the margin
    underpowered              no outcome could have been a claim
    undecided                 every difference points the same way, but not clearly enough
    no detectable difference  everything else

"better", "worse" and "smaller" mean that the whole interval of the difference is. A control without
a common seed is a control that was not beaten. Arms that can't show anything about x* are "better
than plain", "worse than plain", or one of the last four.

All comparisons of all arms with x*, at all sizes and for the mean over the sizes, are one family of
the test in `statistics.py`. An arm that can't show anything about x* is a family of its own.
"""

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from statistics import fmean
from typing import Any, Literal

import numpy as np

from lupi.design import Design, Looks
from lupi.records import Arm
from lupi.verdict.labels import saving_over
from lupi.verdict.results import (
    Answer,
    ArmSummary,
    Cell,
    Difference,
    Outlook,
    Verdict,
)
from lupi.verdict.roles import MEAN, Key, is_candidate
from lupi.verdict.scores import Scores
from lupi.verdict.statistics import (
    ALPHA,
    Floats,
    PairedTest,
    Reached,
    flip_signs,
    mean_interval,
    p_above_zero,
    paired_differences,
    seeds_needed,
)
from lupi.verdict.units import default_margin

LEANING = 0.1
"""One-sided p-value below which every difference of an open question leans to one side."""
N_PATTERNS_AHEAD = 2**11
"""Number of sign patterns for the outlook, which is an estimate."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule by which a comparison is judged."""

    metric: str
    looks: Looks
    design: Design | None = None
    margin: float | None = None
    """In the unit of the metric; None means its default."""
    order: tuple[Key, ...] = ()
    """Questions that were planned to be tested first, one after another."""

    def correlation(self, size: int) -> float:
        """Return the correlation between two seeds due to shared rows."""
        return 0.0 if self.design is None else self.design.correlation(size)


@dataclass(frozen=True, slots=True)
class Question:
    """One arm at one size or over all sizes, and its differences from the controls."""

    controls: tuple[str, ...]
    """The reference first."""
    differences: dict[str, Floats]
    """By control, one per seed, NaN if a run is missing; only controls with common seeds."""
    margin: float
    correlation: float = 0.0
    about_xstar: bool = True
    """Whether the arm can show that x* helps."""
    collapsed: bool = False


def judge_arms(
    scores: Scores, arms: Sequence[Arm], rivals: Mapping[str, Sequence[str]], rule: Rule
) -> tuple[ArmSummary, ...]:
    """Judge every arm at every size, and over all sizes.

    Args:
        scores: Scores of all arms.
        arms: The arms, in the order of the result.
        rivals: Names of the arms to compare each arm with, the reference first; empty for the
            reference itself.
        rule: The rule to judge by.
    """
    judged = judge_questions(scores, arms, rivals, rule)
    share = rule.looks.reached(scores.n_seen)[0][1]
    return tuple(
        ArmSummary(
            **asdict(arm),
            cells=tuple(
                _cell((arm.name, size), judged, rivals, scores, rule, share)
                for size in scores.sizes
            ),
            overall=_overall(arm.name, judged, scores, rule),
        )
        for arm in arms
    )


def judge_questions(
    scores: Scores, arms: Sequence[Arm], rivals: Mapping[str, Sequence[str]], rule: Rule
) -> dict[Key, Answer]:
    """Judge every arm that has rivals, at every size with runs and over all sizes."""
    families: dict[str, dict[Key, Question]] = defaultdict(dict)
    for arm in arms:
        about_xstar = is_candidate(arm)
        questions = {
            (arm.name, size): _question(arm.name, size, rivals, scores, rule, about_xstar)
            for size in scores.sizes
            if rivals[arm.name] and scores.runs[arm.name, size].is_planned
        }
        families["" if about_xstar else arm.name] |= questions
        if about_xstar and (mean := _mean_question(list(questions.values()))):
            families[""][arm.name, MEAN] = mean
    looks = rule.looks.reached(scores.n_seen)
    judged: dict[Key, Answer] = {}
    for family in families.values():
        order = [list(family).index(key) for key in rule.order if key in family]
        judged |= zip(family, judge_family(list(family.values()), looks, order), strict=True)
    return judged


def judge_family(
    questions: Sequence[Question], looks: Reached, order: Sequence[int] = ()
) -> list[Answer]:
    """Answer a family of questions with one test, those in `order` first and one by one."""
    n_seen = looks[-1][0]
    pairs = [
        (i, name)
        for i, question in enumerate(questions)
        for name in (question.controls if i in order else question.differences)
        if n_seen
    ]
    nothing = np.full(n_seen, np.nan)  # an absent control stops a planned order
    rows = [questions[i].differences.get(name, nothing)[:n_seen] for i, name in pairs]
    tested = []
    if pairs:
        of_pairs = [i for i, _ in pairs]
        correlations = [questions[i].correlation for i in of_pairs]
        tested = flip_signs(np.array(rows), looks, correlations, of_pairs, order)
    by_question: list[dict[str, PairedTest]] = [{} for _ in questions]
    for (i, name), test in zip(pairs, tested, strict=True):
        if test.n_seeds:
            by_question[i][name] = test
    return [
        _judge(question, tests, looks)
        for question, tests in zip(questions, by_question, strict=True)
    ]


def _question(
    arm: str,
    size: int,
    rivals: Mapping[str, Sequence[str]],
    scores: Scores,
    rule: Rule,
    about_xstar: bool,
) -> Question:
    gains = scores.gains(arm, size)
    differences = {
        rival: paired_differences(gains, scores.gains(rival, size)) for rival in rivals[arm]
    }
    return Question(
        controls=tuple(rivals[arm]),
        differences={name: d for name, d in differences.items() if np.isfinite(d).any()},
        margin=_margin(rivals[arm][0], size, scores, rule),
        correlation=rule.correlation(size),
        about_xstar=about_xstar,
        collapsed=scores.runs[arm, size].collapsed,
    )


def _mean_question(questions: Sequence[Question]) -> Question | None:
    """Return the question about the mean over the sizes with all controls; None with one size."""
    whole = [q for q in questions if len(q.differences) == len(q.controls)]
    if len(whole) < 2:
        return None
    return Question(
        controls=whole[0].controls,
        differences={
            name: np.mean([q.differences[name] for q in whole], axis=0)
            for name in whole[0].controls
        },
        margin=fmean(q.margin for q in whole),
        correlation=max(q.correlation for q in whole),
        collapsed=any(q.collapsed for q in whole),
    )


def _margin(reference: str, size: int, scores: Scores, rule: Rule) -> float:
    if rule.margin is not None:
        return rule.margin
    plain = scores.runs[reference, size].scores.values()
    return default_margin(rule.metric, fmean(plain) if plain else 0.0)


def _judge(question: Question, tests: Mapping[str, PairedTest], looks: Reached) -> Answer:
    """Answer a question, given the tests of its differences."""
    absent = tuple(name for name in question.controls if name not in tests)
    word = _word(question, tests)
    outlook = None
    if word in ("underpowered", "no detectable difference", "better than plain only"):
        outlook = _outlook(question, tests, looks, word)
    if word == "no detectable difference" and outlook is not None and outlook.leaning:
        word = "undecided"
    differences = tuple(
        Difference(
            other=name,
            mean=test.mean,
            interval=(_finite(test.interval[0]), _finite(test.interval[1])),
            p_value=min(1.0, 2 * min(test.p_better, test.p_worse)),
            n_pairs=test.n_seeds,
        )
        for name, test in tests.items()
    )
    deciding = _deciding(word, tests, outlook)
    return Answer(
        word,
        differences,
        deciding,
        next((d.p_value for d in differences if d.other == deciding), None),
        absent,
        _reason(word, question, tests, absent, looks),
        outlook,
        question.margin,
    )


def _word(question: Question, tests: Mapping[str, PairedTest]) -> Verdict:
    is_better = {name: test.interval[0] > 0 for name, test in tests.items()}
    is_worse = {name: test.interval[1] < 0 for name, test in tests.items()}
    reference, is_whole = question.controls[0], len(tests) == len(question.controls)
    if reference not in tests:
        return "not compared"
    if question.collapsed:
        return "collapsed"
    if is_whole and all(is_better.values()):
        return "helps" if question.about_xstar else "better than plain"
    if is_whole and all(is_worse.values()):
        return "hurts" if question.about_xstar else "worse than plain"
    if any(is_worse.values()):
        return "worse than a control"
    if is_better[reference]:
        return "better than plain only"
    if is_whole and all(_is_equivalent(question, name, test) for name, test in tests.items()):
        return "practically the same"
    if all(test.smallest_p > ALPHA / 2 for test in tests.values()):
        return "underpowered"
    return "no detectable difference"


def _is_equivalent(question: Question, control: str, test: PairedTest) -> bool:
    """Whether the difference is within the margin, and not just zero in most seeds."""
    low, high = test.interval
    is_within = -question.margin < low and high < question.margin
    return is_within and not _is_mostly_zero(question.differences[control])


def _is_mostly_zero(differences: Floats) -> bool:
    return bool(2 * (differences == 0).sum() > np.isfinite(differences).sum())


def _deciding(
    word: Verdict, tests: Mapping[str, PairedTest], outlook: Outlook | None
) -> str | None:
    if not tests:
        return None
    is_no = outlook is not None and outlook.leaning == "no"
    if word in ("hurts", "worse than plain") or is_no:
        return max(tests, key=lambda name: tests[name].mean)  # the smallest loss
    if word == "worse than a control":
        return min(tests, key=lambda name: (tests[name].p_worse, tests[name].mean))
    if word == "practically the same":
        return max(tests, key=lambda name: abs(tests[name].mean))
    open_ones = [name for name in tests if tests[name].interval[0] <= 0] or list(tests)
    return min(open_ones, key=lambda name: tests[name].mean)  # the smallest gain


def _reason(
    word: Verdict,
    question: Question,
    tests: Mapping[str, PairedTest],
    absent: Sequence[str],
    looks: Reached,
) -> str | None:
    """Return why there is no claim, in words."""
    if word == "not compared":
        return f"no common seed with {question.controls[0]}"
    if word == "better than plain only" and absent:
        return f"no common seed with {', '.join(absent)}"
    if word not in ("underpowered", "no detectable difference", "undecided"):
        return None
    same = [name for name, test in tests.items() if not test.has_spread]
    if same:
        return f"the difference from {', '.join(same)} is identical for all seeds"
    zero = [name for name in tests if _is_mostly_zero(question.differences[name])]
    if zero:
        n_zero = int((question.differences[zero[0]] == 0).sum())
        return f"exactly the score of {zero[0]} in {n_zero} of {tests[zero[0]].n_seeds} seeds"
    if word == "underpowered":
        most, needed = max(test.n_seeds for test in tests.values()), seeds_needed(looks[-1][1])
        return f"{most} common seed{'s' * (most != 1)}; a claim needs at least {needed}"
    return f"no common seed with {', '.join(absent)}" if absent else None


def _outlook(
    question: Question, tests: Mapping[str, PairedTest], looks: Reached, word: Verdict
) -> Outlook:
    """Return where an open question leans, and how many more seeds may settle it."""
    leaning: Literal["yes", "no"] | None = None
    if len(tests) == len(question.controls) and word != "better than plain only":
        if all(t.mean > 0 and t.p_better_alone <= LEANING for t in tests.values()):
            leaning = "yes"
        elif all(t.mean < 0 and t.p_worse_alone <= LEANING for t in tests.values()):
            leaning = "no"
    n_seeds = min(test.n_seeds for test in tests.values())
    fewest = max(0, seeds_needed(looks[-1][1]) - n_seeds)
    if leaning is None:
        return Outlook(None, fewest if word == "underpowered" and fewest else None)
    sign = 1.0 if leaning == "yes" else -1.0
    share = looks[-1][1] if word == "underpowered" else (1 + looks[-1][1]) / 2
    more = (
        _more_seeds(sign * question.differences[name], test, sign, question.correlation, share)
        for name, test in tests.items()
    )
    needed = [n for n in more if n is not None]
    if len(needed) < len(tests):  # a lean that far more seeds would not settle is none
        return Outlook(None, None)
    return Outlook(leaning, max([fewest, *needed]))


def _more_seeds(
    differences: Floats, test: PairedTest, sign: float, correlation: float, share: float
) -> int | None:
    """Return how many more seeds like these make a claim; None if more than twice as many.

    The seeds so far are repeated in their order. The correction for the family is assumed to stay
    what it is.
    """
    seen = differences[np.isfinite(differences)]
    if sign > 0:
        correction = test.p_better / test.p_better_alone
    else:
        correction = test.p_worse / test.p_worse_alone

    def is_enough(n_more: int) -> bool:
        row = np.resize(seen, len(seen) + n_more)
        (p_value,) = p_above_zero(row[None], correlation, N_PATTERNS_AHEAD)
        return bool(correction * p_value <= share * ALPHA / 2)

    if not is_enough(2 * len(seen)):
        return None
    numbers = range(1, 2 * len(seen) + 1)
    return numbers[bisect_left(numbers, True, key=is_enough)]


def _finite(end: float) -> float | None:
    return end if math.isfinite(end) else None


def _cell(
    key: Key,
    judged: Mapping[Key, Answer],
    rivals: Mapping[str, Sequence[str]],
    scores: Scores,
    rule: Rule,
    share: float,
) -> Cell:
    """Return one arm at one size; label savings may spend this share of the allowed error."""
    runs, (arm, size) = scores.runs[key], key
    correlation = rule.correlation(size)
    values = list(runs.scores.values())
    answer = judged.get(key) or Answer("reference" if runs.is_planned else "not run")
    reference = rivals[arm][0] if key in judged else None
    savings = {
        other: saving_over(other, key, answer, scores, share, correlation)
        for other in {reference, answer.deciding_control}
        if other is not None
    }
    return Cell(
        **_fields(answer),
        size=size,
        n_seeds=len(values),
        mean=fmean(values) if values else None,
        interval=mean_interval(values, correlation),
        n_diverged=runs.n_diverged,
        n_collapsed=runs.n_collapsed,
        n_missing=runs.n_missing,
        label_saving=savings.pop(reference or "", None),
        label_saving_control=savings.get(answer.deciding_control or ""),
        scope=rule.design.scope(size) if rule.design else None,
        scores=dict(runs.scores),
        recorded={name: fmean(values) for name, values in runs.recorded.items()},
    )


def _fields(answer: Answer) -> dict[str, Any]:
    return {field.name: getattr(answer, field.name) for field in fields(answer)}


def _overall(arm: str, judged: Mapping[Key, Answer], scores: Scores, rule: Rule) -> Cell | None:
    """Return the answer for the mean over the sizes, on the seeds that have all of them."""
    if (arm, MEAN) not in judged:
        return None
    sizes = [
        size
        for size in scores.sizes
        if (arm, size) in judged and not judged[arm, size].absent
    ]  # fmt: skip
    values = {
        seed: fmean(scores.runs[arm, size].scores[seed] for size in sizes)
        for seed in scores.common_seeds(*((arm, size) for size in sizes))
    }
    correlation = max(rule.correlation(size) for size in sizes)
    return Cell(
        **_fields(judged[arm, MEAN]),
        size=0,
        n_seeds=len(values),
        mean=fmean(values.values()) if values else None,
        interval=mean_interval(list(values.values()), correlation),
        scores=values,
        sizes=tuple(sizes),
    )
