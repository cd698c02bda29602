"""`lupi.judge`: judge any scores. Needs neither torch nor pandas."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

from lupi.design import Design, Looks
from lupi.errors import LupiError
from lupi.records import Arm, Metric
from lupi.settings import unknown_name
from lupi.verdict.cautions import score_cautions
from lupi.verdict.frames import Columns, checked_unit, read_columns, to_scores
from lupi.verdict.results import Judgement
from lupi.verdict.roles import parse_questions
from lupi.verdict.rule import Rule, judge_arms
from lupi.verdict.statistics import ALPHA
from lupi.verdict.summary import preliminary
from lupi.verdict.units import lower_is_better
from lupi.verdict.words import statement


def judge(
    scores: Any,
    *,
    method: str | Sequence[str],
    controls: str | Sequence[str] | Mapping[str, Sequence[str]],
    metric: str = "score",
    higher_is_better: bool | None = None,
    unit: Literal["share", "percent"] | None = None,
    margin: float | None = None,
    looks: int | Sequence[int] | Looks | None = None,
    questions: Sequence[str] = (),
    design: Design | None = None,
    size: int | None = None,
    columns: Mapping[str, str] | None = None,
) -> Judgement:
    """Judge whether a method is better than each of its controls.

    Differences are paired over seeds and tested by flipping the signs of whole seeds, for all
    methods, controls and training-set sizes together. The interval of each difference comes from
    the same test, so verdicts and numbers can't contradict each other.

    Args:
        scores: A pandas or polars frame, a mapping of columns or a list of rows, with `arm`,
            `seed`, `score`, and `size` if there are several training-set sizes. A row is one run;
            runs of the same seed (and size) must share what the seed determines, such as training
            rows. Or a wide table: `seed` and a column for each arm. Seeds count in the order of
            appearance. A score that is missing or not finite is a missing run.
        method: The arm to judge, or several.
        controls: The arms it must beat, the plain reference first; or a mapping from each method
            to its controls.
        metric: Name of the metric; differences of accuracies are written in points.
        higher_is_better: Whether larger scores are better; by default known from the metric (lower
            for losses and errors).
        unit: Whether accuracies and the like are from 0 to 1 ("share") or to 100 ("percent"); by
            default known from the scores.
        margin: Smaller differences count as practically the same, in the unit of the scores. By
            default one point for an accuracy, otherwise 1 % of the reference's score.
        looks: The numbers of seeds at which you look at the results, the last one planned. By
            default this is the first look, which may spend 80 % of the allowed error; pass a
            `lupi.Looks` to divide it differently.
        questions: Questions to ask first, in an order that was planned before you saw scores, such
            as `["ours@200", "ours@mean", "other@200"]`. Each is tested on its own, as long as all
            before it are claimed; all others follow.
        design: How the rows of each seed were drawn, because overlapping training sets are not
            independent replicates. By default seeds are treated as independent.
        size: Training-set size of all rows, if the table has no column for it.
        columns: Names in your table of `arm`, `seed`, `score` and `size`, where they differ.

    Returns:
        Verdicts with intervals, p-values and label-saving factors.

    Example:
        >>> lupi.judge(frame, method="ours", controls=["baseline", "ours, shuffled"])
    """
    methods = [method] if isinstance(method, str) else list(method)
    by_method = _controls(methods, controls)
    wanted = [*methods, *(name for group in by_method.values() for name in group)]
    table = read_columns(scores, columns, metric, wanted)
    _fill_size(table, size, design)
    names = list(dict.fromkeys(table["arm"]))
    reference = _check(methods, by_method, names)
    named = checked_unit(metric, table, unit)
    is_higher = not lower_is_better(metric) if higher_is_better is None else higher_is_better
    found, warnings = to_scores(table, is_higher)
    if is_higher and lower_is_better(metric):
        warnings.append(f"higher_is_better=True, but {metric} is usually better if it is lower")
    rivals: dict[str, Sequence[str]] = {name: [reference] for name in names}
    rivals |= by_method | {reference: []}
    order = tuple(parse_questions(questions, methods, found.sizes))
    rule = Rule(named, _looks(looks, found.n_seen), design, margin, order)
    if found.n_seen > rule.looks.counts[-1]:
        warnings.append(
            f"looks: only the first {rule.looks.counts[-1]} of {found.n_seen} seeds are used; add "
            f"{found.n_seen} to `looks` to use all"
        )
    arms = [Arm(name, method=name, uses_xstar=name in methods) for name in names]
    judged = judge_arms(found, arms, rivals, rule)
    words = statement(
        judged,
        Metric(named, is_higher),
        reference,
        rule,
        preliminary(found.n_seen, rule.looks),
        about_xstar=False,
    )
    return Judgement(
        statement=words,
        metric=named,
        higher_is_better=is_higher,
        reference=reference,
        alpha=ALPHA,
        looks=rule.looks.counts,
        arms=judged,
        warnings=(*warnings, *score_cautions(judged, found)),
    )


def _controls(
    methods: Sequence[str], given: str | Sequence[str] | Mapping[str, Sequence[str]]
) -> dict[str, Sequence[str]]:
    if isinstance(given, str):
        given = [given]
    if isinstance(given, Mapping):
        found = {str(name): list(group) for name, group in given.items()}
    else:
        found = {name: list(given) for name in methods}
    for group in found.values():
        twice = [name for name in group if group.count(name) > 1]
        if twice:
            raise LupiError(f"controls: {twice[0]} is listed twice")
    return dict(found)


def _fill_size(table: Columns, size: int | None, design: Design | None) -> None:
    """Add the column of sizes if it is missing, and check it against the design."""
    if size is not None and "size" in table:
        raise LupiError("size: the table has a column of sizes; leave one of them out")
    if design is not None and size is None and "size" not in table:
        raise LupiError(
            "design: how much seeds overlap depends on the training-set size; add a column `size`, "
            "or pass it as `size=200`"
        )
    table.setdefault("size", [size or 0] * len(table["arm"]))
    if design is None:
        return
    if design.n_pool < 1 or design.test not in ("per-seed", "fixed"):
        raise LupiError(
            f"design: expected a pool of at least one row and test 'per-seed' or 'fixed', got "
            f"{design.n_pool} and {design.test!r}"
        )
    if (largest := max(table["size"], default=0)) > design.n_pool:
        raise LupiError(
            f"design: {largest} training rows can't be drawn from a pool of {design.n_pool}"
        )


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


def _looks(given: int | Sequence[int] | Looks | None, n_seeds: int) -> Looks:
    if isinstance(given, Looks):
        return given
    if given is None:
        return Looks((max(n_seeds, 1),))
    counts = tuple(given) if isinstance(given, Sequence) else (given,)
    is_counts = all(type(n) is int and n > 0 for n in counts)
    if not counts or not is_counts or any(a >= b for a, b in pairwise(counts)):
        raise LupiError(f"looks: expected increasing numbers of seeds, got {list(counts)}")
    return Looks(counts)
