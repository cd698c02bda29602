"""The result of a comparison as data, for reports and programs."""

from dataclasses import dataclass, field
from typing import Any, Literal

Answer = Literal[
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

Verdict = Answer | Literal["better than plain", "worse than plain", "reference", "not run"]
"""Verdict on any arm. `reference` is the plain arm itself, and `not run` a size that only other
arms have."""

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
class Cell:
    """One arm at one size."""

    size: int
    n_seeds: int
    mean: float | None
    interval: tuple[float, float] | None
    """Student's 95 % interval of the mean, widened for rows that seeds share."""
    n_diverged: int
    n_collapsed: int
    n_missing: int
    """Planned runs without a result: unfinished or failed."""
    verdict: Verdict
    p_value: float | None = None
    """P-value of the deciding difference."""
    differences: tuple[Difference, ...] = ()
    """Against the reference first, then against the other controls."""
    deciding_control: str | None = None
    """The control that decides: the smallest gain of an arm that helps, the smallest loss of one
    that hurts, the clearest loss of one that is worse than a control."""
    absent: tuple[str, ...] = ()
    """Controls without a common seed; they count as not beaten."""
    reason: str | None = None
    """Why there is no claim, if there is more to say than the verdict."""
    outlook: Outlook | None = None
    """Where an open question leans; None if it is answered."""
    label_saving: LabelSaving | None = None
    """Label saving compared with the reference."""
    label_saving_control: LabelSaving | None = None
    """Label saving compared with the deciding control; None if that is the reference."""
    margin: float | None = None
    """Smaller differences count as practically the same."""
    scope: str | None = None
    """What the verdict applies to, such as "data like these"; None if unknown."""
    scores: dict[int, float] = field(default_factory=dict, hash=False)
    """Test score by seed."""
    recorded: dict[str, float] = field(default_factory=dict, hash=False)
    """Mean of every recorded test score, by name."""
    sizes: tuple[int, ...] = ()
    """The sizes it is a mean of, if it is about the mean over sizes."""

    @property
    def deciding(self) -> Difference | None:
        """The difference from the deciding control."""
        return next((d for d in self.differences if d.other == self.deciding_control), None)


@dataclass(frozen=True, slots=True)
class ArmSummary:
    """One arm over all sizes."""

    name: str
    method: str
    control: str
    uses_xstar: bool
    sees_xstar_at_test: bool
    xstar_frac: float
    """Fraction of training rows with x*."""
    family: str
    """Common name of arms that differ only in `xstar_frac`; empty for other arms."""
    cells: tuple[Cell, ...]
    classical: bool = False
    """Whether it is a classical model: shown for reference, never a control."""
    overall: Cell | None = None
    """The mean over all sizes; None for one size, and for arms that can't show that x* helps."""


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
class Summary:
    """A comparison, judged."""

    comparison: str
    statement: Statement
    metric: str
    higher_is_better: bool
    reference: str
    alpha: float
    trivial: float | None
    """The score of a predictor that ignores x."""
    sizes: tuple[int, ...]
    seeds: tuple[int, ...]
    n_planned: int
    n_finished: int
    failed: tuple[str, ...]
    """Run ids whose last attempt raised an error."""
    warnings: tuple[str, ...]
    arms: tuple[ArmSummary, ...]
    tuning: Tuning | None = None
    """None if the comparison is untuned."""
    looks: tuple[int, ...] = ()
    """Numbers of seeds at which the comparison is judged."""
    confirmation: "Summary | None" = None
    """The winner and its controls on fresh seeds, judged on these alone."""

    @property
    def headline(self) -> str:
        """What was found, and what to do about it."""
        return f"{self.statement.headline} {self.statement.advice}".strip()
