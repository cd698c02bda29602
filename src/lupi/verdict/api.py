"""`lupi.judge`: judge any scores. Needs neither torch nor pandas."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from lupi.design import Design, Looks
from lupi.errors import LupiError
from lupi.records import Arm, Metric
from lupi.settings import unknown_name
from lupi.verdict.cautions import score_cautions
from lupi.verdict.frames import Columns, checked_unit, read_columns, to_scores
from lupi.verdict.results import ArmSummary, Cell, LabelSaving, Statement, Verdict
from lupi.verdict.roles import parse_questions
from lupi.verdict.rule import Rule, judge_arms
from lupi.verdict.statistics import ALPHA
from lupi.verdict.summary import preliminary
from lupi.verdict.units import difference, interval, lower_is_better, p_value
from lupi.verdict.words import about_methods, statement

if TYPE_CHECKING:
    import pandas as pd

HEADS = ("arm", "n", "seeds", "mean", "verdict", "against", "difference", "95 % interval", "p")


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
) -> "Judgement":
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
        about_methods(reference),
    )
    return Judgement(
        statement=words,
        metric=named,
        higher_is_better=is_higher,
        reference=reference,
        methods=tuple(methods),
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
    if isinstance(given, int):
        given = [given]
    counts = (max(n_seeds, 1),) if given is None else tuple(given)
    is_counts = all(isinstance(n, int) and n > 0 for n in counts)
    if not counts or not is_counts or any(a >= b for a, b in pairwise(counts)):
        raise LupiError(f"looks: expected increasing numbers of seeds, got {list(counts)}")
    return Looks(counts)


@dataclass(frozen=True, slots=True)
class Judgement:
    """Judged scores, to print or to show in a notebook."""

    statement: Statement
    metric: str
    higher_is_better: bool
    reference: str
    methods: tuple[str, ...]
    alpha: float
    looks: tuple[int, ...]
    """Numbers of seeds at which results are inspected."""
    arms: tuple[ArmSummary, ...]
    """Every arm, with all its numbers at each size."""
    warnings: tuple[str, ...]

    @property
    def headline(self) -> str:
        """What was found, and what to do about it."""
        return f"{self.statement.headline} {self.statement.advice}".strip()

    @property
    def verdicts(self) -> dict[tuple[str, int], Verdict]:
        """The verdict on each method at each size."""
        return {
            (arm.name, cell.size): cell.verdict
            for arm in self.arms
            if arm.name in self.methods
            for cell in arm.cells
            if cell.verdict != "not run"
        }

    @property
    def verdicts_over_sizes(self) -> dict[str, Verdict]:
        """The verdict on the mean over sizes of each method; empty with one size."""
        return {arm.name: arm.overall.verdict for arm in self.arms if arm.overall is not None}

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per arm, size and control, with unrounded numbers."""
        return [row for arm in self.arms for cell in arm.cells for row in _rows(arm, cell)]

    def to_frame(self) -> "pd.DataFrame":
        """Return `rows` as a DataFrame (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(self.rows())

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain types, for JSON."""
        return {"headline": self.headline, **asdict(self)}

    def __str__(self) -> str:
        """Return the verdict, a table, notes and warnings."""
        table = [HEADS, *self._lines()]
        widths = [max(len(line[i]) for line in table) for i in range(len(HEADS))]
        lines = [
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
            for line in table
        ]
        marked = [f"! {warning}" for warning in self.warnings]
        words = self.statement
        return "\n".join([self.headline, words.exact, "", *lines, *words.notes, *marked])

    def _repr_html_(self) -> str:
        """Return the same for a notebook."""
        head = "".join(f"<th>{escape(text)}</th>" for text in HEADS)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in line) + "</tr>"
            for line in self._lines()
        )
        words = self.statement
        below = "".join(f"<p>{escape(text)}</p>" for text in (*words.notes, *self.warnings))
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        above = f"<p><b>{escape(self.headline)}</b></p><p>{escape(words.exact)}</p>"
        return f"{above}{table}{below}"

    def _lines(self) -> Iterator[tuple[str, ...]]:
        """Yield a line for each arm and size, with the deciding difference."""
        for arm in self.arms:
            for cell in (*arm.cells, *([arm.overall] if arm.overall else [])):
                if cell.mean is None:
                    continue
                numbers = ("", "", "", "")
                if cell.deciding is not None:
                    numbers = (
                        cell.deciding.other,
                        difference(cell.deciding.mean, self.metric),
                        interval(cell.deciding.interval, self.metric),
                        p_value(cell.deciding.p_value),
                    )
                size = "mean" if cell.sizes else str(cell.size) if cell.size else ""
                mean = f"{cell.mean:.4g}"
                yield (arm.name, size, str(cell.n_seeds), mean, cell.verdict, *numbers)


def _rows(arm: ArmSummary, cell: Cell) -> Iterator[dict[str, Any]]:
    outlook = cell.outlook
    start = {
        "arm": arm.name,
        "size": cell.size,
        "n_seeds": cell.n_seeds,
        "mean": cell.mean,
        "verdict": cell.verdict,
        "leaning": outlook.leaning if outlook else None,
        "more_seeds": outlook.more_seeds if outlook else None,
    }
    if not cell.differences:
        yield start
    for found in cell.differences:
        yield {
            **start,
            "against": found.other,
            "is_deciding": found.other == cell.deciding_control,
            "difference": found.mean,
            "low": found.interval[0],
            "high": found.interval[1],
            "p_value": found.p_value,
            "n_pairs": found.n_pairs,
            **_saving(cell, found.other),
        }


def _saving(cell: Cell, other: str) -> dict[str, Any]:
    found: LabelSaving | None = next(
        (s for s in (cell.label_saving, cell.label_saving_control) if s and s.other == other),
        None,
    )
    low, high = (found.interval if found else None) or (None, None)
    return {
        "label_saving": found.factor if found else None,
        "label_saving_low": low,
        "label_saving_high": high,
    }
