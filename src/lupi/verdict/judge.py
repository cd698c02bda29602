"""`lupi.judge`: judge any scores. Needs neither torch nor pandas."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from lupi.design import Design, Looks
from lupi.errors import LupiError
from lupi.records import Arm, Metric
from lupi.settings import unknown_name
from lupi.verdict.judgement import Judgement
from lupi.verdict.judging import Rule, judge_arms
from lupi.verdict.scores import Runs, Scores
from lupi.verdict.verdict import ALPHA
from lupi.verdict.words.headline import ABOUT_METHODS, headline

COLUMNS = ("arm", "seed", "score")


def judge(
    scores: Any,
    *,
    method: str | Sequence[str],
    controls: Sequence[str] | Mapping[str, Sequence[str]],
    metric: str = "score",
    higher_is_better: bool = True,
    margin: float | None = None,
    looks: Sequence[int] | Looks | None = None,
    design: Design | None = None,
) -> Judgement:
    """Judge whether a method is better than each of its controls.

    Differences are paired over seeds, tested by exact sign flips and corrected for all controls,
    methods, training-set sizes and looks. The interval of each difference comes from the same
    test, so verdicts and numbers can't contradict each other.

    Args:
        scores: A DataFrame or a mapping of columns: `arm`, `seed`, `score`, and `size` if there
            are several training-set sizes. A row is one run; runs of the same seed (and size)
            must share what the seed determines, such as training rows. A score that is missing
            or not finite counts as a missing run.
        method: The arm to judge, or several.
        controls: The arms it must beat, the plain reference first; or a mapping from each method
            to its controls.
        metric: Name of the metric; accuracies between 0 and 1 are written in percent.
        higher_is_better: Whether larger scores are better.
        margin: Smaller differences count as practically the same, in the unit of the scores. By
            default one point for an accuracy, otherwise 1 % of the reference's score.
        looks: The numbers of seeds at which you looked at the results, the current one last. By
            default this is the first look, which spends 80 % of the allowed error; pass a
            `lupi.Looks` to divide it differently.
        design: How the rows of each seed were drawn, because overlapping training sets are not
            independent replicates. By default seeds are treated as independent.

    Returns:
        Verdicts with intervals, p-values and label-saving factors.

    Example:
        >>> lupi.judge(frame, method="ours", controls=["baseline", "ours, shuffled"])
    """
    columns = _columns(scores)
    names = list(dict.fromkeys(columns["arm"]))
    methods = [method] if isinstance(method, str) else list(method)
    by_method = (
        dict(controls) if isinstance(controls, Mapping) else dict.fromkeys(methods, controls)
    )
    reference = _check(methods, by_method, names)
    table, warnings = _scores(columns, names, higher_is_better)
    rivals: dict[str, Sequence[str]] = {name: [reference] for name in names}
    rivals |= by_method | {reference: []}
    rule = Rule(metric, _looks(looks, len(table.seeds)), design, margin)
    arms = [Arm(name, method=name, uses_xstar=name in methods) for name in names]
    judged = judge_arms(table, arms, rivals, rule)
    measured = Metric(metric, higher_is_better)
    return Judgement(
        headline=headline(
            judged, measured, reference, rule, len(columns["arm"]), ABOUT_METHODS, plain=reference
        ),
        metric=metric,
        higher_is_better=higher_is_better,
        reference=reference,
        methods=tuple(methods),
        alpha=ALPHA,
        looks=rule.looks.counts,
        arms=judged,
        warnings=tuple(warnings),
    )


def _columns(scores: Any) -> dict[str, list[Any]]:
    """Return the columns as lists; `size` is 0 if there are no sizes."""
    missing = [name for name in COLUMNS if name not in scores]
    if missing:
        raise LupiError(
            f"scores: no column {missing[0]!r}; judge takes the columns arm, seed, score and, "
            f"optionally, size; got {', '.join(map(str, scores)) or 'none'}"
        )
    columns = {
        name: [value.item() if hasattr(value, "item") else value for value in scores[name]]
        for name in (*COLUMNS, "size")
        if name in scores
    }
    for size in columns.get("size", ()):
        if not isinstance(size, int | float) or not size > 0:
            raise LupiError(f"scores: a size is a number of training rows; got {size!r}")
    columns.setdefault("size", [0] * len(columns["arm"]))
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise LupiError(f"scores: columns of different lengths: {lengths}")
    return columns


def _check(methods: Sequence[str], controls: Mapping[str, Sequence[str]], names: list[str]) -> str:
    """Check the arguments and return the reference: the first control of all methods."""
    for name in [*methods, *(control for group in controls.values() for control in group)]:
        if name not in names:
            raise LupiError(f"scores: {unknown_name('arm', name, names)}")
    for name in methods:
        if not controls.get(name):
            raise LupiError(f"controls: {name} has none; give at least the plain reference")
        if name in controls[name]:
            raise LupiError(f"controls: {name} can't be a control of itself")
    references = {controls[name][0] for name in methods}
    if len(references) > 1:
        raise LupiError(
            f"controls: the first control is the reference, the same for all methods; got "
            f"{', '.join(sorted(references))}"
        )
    (reference,) = references
    if reference in methods:
        raise LupiError(f"controls: {reference} is a method, so it can't be the reference")
    return reference


def _looks(given: Sequence[int] | Looks | None, n_seeds: int) -> Looks:
    if isinstance(given, Looks):
        return given
    counts = (n_seeds,) if given is None else tuple(given)
    if not counts or any(a >= b for a, b in pairwise(counts)):
        raise LupiError(f"looks: expected increasing numbers of seeds, got {list(counts)}")
    return Looks(counts)


def _scores(
    columns: Mapping[str, list[Any]], names: Iterable[str], higher_is_better: bool
) -> tuple[Scores, list[str]]:
    sizes, seeds = sorted(set(columns["size"])), sorted(set(columns["seed"]))
    runs = {(name, size): Runs() for name in names for size in sizes}
    warnings: list[str] = []
    seen: set[tuple[Any, ...]] = set()
    for arm, size, seed, score in zip(
        *(columns[name] for name in ("arm", "size", "seed", "score")), strict=True
    ):
        if (arm, size, seed) in seen:
            raise LupiError(
                f"scores: two rows for arm {arm}, size {size}, seed {seed}; expected one per run"
            )
        seen.add((arm, size, seed))
        if score is None or not math.isfinite(score):
            runs[arm, size].n_missing += 1
            warnings.append(f"no finite score for {arm}, size {size}, seed {seed}: a missing run")
        else:
            runs[arm, size].scores[seed] = float(score)
    sign = 1.0 if higher_is_better else -1.0
    return Scores(tuple(sizes), tuple(seeds), runs, sign, None, ()), warnings
