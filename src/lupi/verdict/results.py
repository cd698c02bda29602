"""Judged scores as data, to print or to read by programs.

A *question* is about one arm at one size (or over all sizes); its *answer* is a verdict with the
differences that it rests on. The answers about all arms are a *judgement*; that of a recorded
comparison, which knows more about its runs, is a `Summary`.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from lupi.records import Arm
from lupi.verdict.roles import is_candidate
from lupi.verdict.units import difference, interval, p_value

if TYPE_CHECKING:
    import pandas as pd

XstarVerdict = Literal[
    "helps",
    "hurts",
    "worse than a control",
    "better than plain only",
    "practically the same",
    "undecided",
    "no detectable difference",
    "collapsed",
    "underpowered",
    "not compared",
]
"""Verdict on an arm with x* at one size, the most informative first: `lupi.verdict.rule`."""

Verdict = XstarVerdict | Literal["better than plain", "worse than plain", "reference", "not run"]
"""Verdict on any arm. `reference` is the plain arm itself, and `not run` a size that only other
arms have."""


class Look(NamedTuple):
    """How a verdict is shown."""

    mark: str
    """After a score, in the terminal and in tables."""
    sign: str = ""
    """On the page: readable without colour."""
    label: str = ""
    """Of a whole comparison with this verdict."""
    colour: str = ""
    """Of the mark, in the terminal."""


LOOKS: dict[Verdict, Look] = {
    "helps": Look("+", "▲", "x* helps", "green"),
    "hurts": Look("-", "▼", "x* hurts", "red"),
    "worse than a control": Look("x", "▽", "Worse than a control", "red"),
    "better than plain only": Look("o", "△", "Better than the plain model, but no credit for x*"),
    "practically the same": Look("≈", "≈", "Practically the same"),
    "undecided": Look("~", "~", "Undecided"),
    "no detectable difference": Look(".", "·", "No detectable difference"),
    "collapsed": Look("c", "∅", "Collapsed: x* was not used", "yellow"),
    "underpowered": Look("?", "?", "Underpowered: too few seeds"),
    "not compared": Look("!", "×", "Not compared"),
    "better than plain": Look(">"),
    "worse than plain": Look("<"),
    "reference": Look(" "),
    "not run": Look(" "),
}
"""Every verdict, the most informative first."""

Reach = Literal["measured", "beyond range", "below range", "unknown"]
"""Whether the reference's learning curve reaches the arm's score inside the measured sizes."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Paired difference over seeds, arm minus other; positive is better for every metric."""

    other: str
    mean: float
    interval: tuple[float | None, float | None]
    """Interval of at least 95 %; None is an open end (too few seeds). It excludes zero if and only
    if the p-value is below alpha."""
    p_value: float
    """Two-sided, corrected for looks, arms and sizes."""
    n_pairs: int
    """Number of common seeds."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """Where an open question leans, and what may settle it."""

    leaning: Literal["yes", "no"] | None
    """Whether every difference points to "helps" or to "hurts", though not clearly enough."""
    more_seeds: int | None
    """Additional seeds that settle it if they are like those so far; None if unknown."""


@dataclass(frozen=True, slots=True)
class LabelSaving:
    """The factor by which another arm needs more labels for the same score."""

    other: str
    reach: Reach
    factor: float | None
    interval: tuple[float, float | None] | None
    """95 % interval; an upper end of None is beyond the measured sizes."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a question about one arm."""

    verdict: Verdict
    differences: tuple[Difference, ...] = ()
    """Against the reference first, then against the other controls."""
    deciding_control: str | None = None
    """The control that decides: the smallest gain of an arm that helps, the smallest loss of one
    that hurts, the clearest loss of one that is worse than a control; otherwise the smallest gain
    over those not beaten."""
    p_value: float | None = None
    """P-value of the deciding difference."""
    absent: tuple[str, ...] = ()
    """Controls without a common seed; they count as not beaten."""
    reason: str | None = None
    """Why there is no claim, if there is more to say than the verdict."""
    outlook: Outlook | None = None
    """Where an open question leans; None if it is answered."""
    margin: float | None = None
    """Smaller differences count as practically the same."""

    @property
    def deciding(self) -> Difference | None:
        """The difference from the deciding control."""
        return self.against(self.deciding_control)

    def against(self, other: str | None) -> Difference | None:
        """Return the difference from another arm, if there is one."""
        return next((found for found in self.differences if found.other == other), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell(Answer):
    """One arm at one size, or over all sizes."""

    size: int
    n_seeds: int
    mean: float | None
    interval: tuple[float, float] | None
    """Student's 95 % interval of the mean, widened for rows that seeds share."""
    n_diverged: int = 0
    n_collapsed: int = 0
    n_missing: int = 0
    """Planned runs without a result: unfinished or failed."""
    label_saving: LabelSaving | None = None
    """Label saving compared with the reference."""
    label_saving_control: LabelSaving | None = None
    """Label saving compared with the deciding control; None if that is the reference."""
    scope: str | None = None
    """What the verdict applies to, such as "data like these"; None if unknown."""
    scores: dict[int, float] = field(default_factory=dict, hash=False)
    """Test score by seed."""
    recorded: dict[str, float] = field(default_factory=dict, hash=False)
    """Mean of every recorded test score, by name."""
    sizes: tuple[int, ...] = ()
    """The sizes it is a mean of, if it is about the mean over sizes."""


@dataclass(frozen=True, slots=True)
class ArmSummary(Arm):
    """One arm over all sizes."""

    cells: tuple[Cell, ...] = ()
    overall: Cell | None = None
    """The mean over all sizes; None for one size, and for arms that can't show that x* helps."""

    def at(self, size: int) -> Cell:
        """Return the arm at one of the sizes."""
        return next(cell for cell in self.cells if cell.size == size)


@dataclass(frozen=True, slots=True)
class Trial:
    """A candidate of tuning: settings of one arm and their score on validation rows."""

    arm: str
    number: int
    """0 is the arm with its initial settings."""
    changes: dict[str, Any]
    n_planned: int
    n_finished: int
    score: float | None
    """Mean over the finished trials."""
    chosen: bool


@dataclass(frozen=True, slots=True)
class Tuning:
    """How the settings of the arms were chosen."""

    note: str | None
    """The note in the settings, if they were chosen in another way."""
    size: int | None = None
    n_seeds: int | None = None
    shared: tuple[str, ...] = ()
    """Controls that have the settings of their arm."""
    candidates: tuple[Trial, ...] = ()

    @property
    def is_done(self) -> bool:
        """Whether the choice was made."""
        return self.note is not None or any(trial.chosen for trial in self.candidates)


@dataclass(frozen=True, slots=True)
class Subgroup:
    """All arms on the test rows of one subgroup."""

    column: str
    name: str
    arms: tuple[ArmSummary, ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """The verdict of a comparison in words. All sentences come from `lupi.verdict.words`."""

    headline: str
    """What was found, for a reader in a hurry."""
    advice: str
    """What to do about it."""
    exact: str
    """The same in one exact sentence: which arm, which sizes, how much, how certain."""
    notes: tuple[str, ...] = ()
    """What the numbers can't say."""
    is_confirmed: bool | None = None
    """Whether fresh seeds confirm that x* helps; None if none were run."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """Judged scores, to print or to show in a notebook."""

    statement: Statement
    metric: str
    higher_is_better: bool
    reference: str
    alpha: float
    arms: tuple[ArmSummary, ...]
    """Every arm, with all its numbers at each size."""
    warnings: tuple[str, ...]
    looks: tuple[int, ...] = ()
    """Numbers of seeds at which the scores are judged."""

    @property
    def headline(self) -> str:
        """What was found, and what to do about it."""
        return f"{self.statement.headline} {self.statement.advice}".strip()

    @property
    def methods(self) -> tuple[str, ...]:
        """The arms that are judged; others are controls, or can't show that x* helps."""
        return tuple(arm.name for arm in self.arms if is_candidate(arm))

    @property
    def verdicts(self) -> dict[tuple[str, int], Verdict]:
        """The verdict on each method at each size."""
        return {
            (arm.name, cell.size): cell.verdict
            for arm in self.arms
            if is_candidate(arm)
            for cell in arm.cells
            if cell.verdict != "not run"
        }

    @property
    def verdicts_over_sizes(self) -> dict[str, Verdict]:
        """The verdict on the mean over sizes of each method; empty with one size."""
        return {arm.name: arm.overall.verdict for arm in self.arms if arm.overall is not None}

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per arm, size and control, with unrounded numbers."""
        return [row for arm in self.arms for cell in arm.cells for row in _rows(arm.name, cell)]

    def to_frame(self) -> "pd.DataFrame":
        """Return `rows` as a DataFrame (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(self.rows())

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain JSON types; non-finite numbers are an error."""
        document = {"headline": self.headline, **asdict(self)}
        found: dict[str, Any] = json.loads(json.dumps(document, allow_nan=False))
        return found

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


HEADS = ("arm", "n", "seeds", "mean", "verdict", "against", "difference", "95 % interval", "p")


def _rows(arm: str, cell: Cell) -> Iterator[dict[str, Any]]:
    start = {
        "arm": arm,
        "size": cell.size,
        "n_seeds": cell.n_seeds,
        "mean": cell.mean,
        "mean_low": cell.interval[0] if cell.interval else None,
        "mean_high": cell.interval[1] if cell.interval else None,
        "n_missing": cell.n_missing,
        "n_diverged": cell.n_diverged,
        "n_collapsed": cell.n_collapsed,
        "verdict": cell.verdict,
        "leaning": cell.outlook.leaning if cell.outlook else None,
        "more_seeds": cell.outlook.more_seeds if cell.outlook else None,
    }
    if not cell.differences:
        yield start
    savings = {s.other: s for s in (cell.label_saving_control, cell.label_saving) if s is not None}
    for found in cell.differences:
        saving = savings.get(found.other)
        low, high = (saving.interval if saving else None) or (None, None)
        yield {
            **start,
            "against": found.other,
            "is_deciding": found.other == cell.deciding_control,
            "difference": found.mean,
            "low": found.interval[0],
            "high": found.interval[1],
            "p_value": found.p_value,
            "n_pairs": found.n_pairs,
            "label_saving": saving.factor if saving else None,
            "label_saving_reach": saving.reach if saving else None,
            "label_saving_low": low,
            "label_saving_high": high,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary(Judgement):
    """The judgement of a recorded comparison."""

    comparison: str
    trivial: float | None
    """The score of a predictor that ignores x."""
    sizes: tuple[int, ...]
    seeds: tuple[int, ...]
    n_planned: int
    n_finished: int
    failed: tuple[str, ...]
    """Run ids whose last attempt raised an error."""
    tuning: Tuning | None = None
    """None if the comparison is untuned."""
    confirmation: "Summary | None" = None
    """The winner and its controls on fresh seeds, judged on these alone."""
    subgroups: tuple["Subgroup", ...] = ()
    """The same arms on parts of the test rows; not corrected for the number of subgroups."""
