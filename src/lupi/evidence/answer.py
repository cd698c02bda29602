"""The answer to "did x* help?" as data: everything a report or a program reads."""

from dataclasses import dataclass, field
from typing import Any, Literal

Answer = Literal[
    "helps",
    "hurts",
    "worse than a control",
    "better than plain only",
    "practically the same",
    "no detectable difference",
    "collapsed",
    "underpowered",
]
"""What is said of an arm with x* at one size, the most telling first; `lupi.evidence.verdict` says
when."""

Verdict = Answer | Literal["better than plain", "worse than plain", "reference", "not run"]
"""What is said of any arm. `reference` stands for the plain arm itself, which others are held
against, and `not run` for a size that only other arms have."""

Reach = Literal["measured", "beyond range", "below range", "unknown"]
"""Whether the reference's learning curve reaches the arm's score inside the measured sizes."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Paired difference over seeds, arm minus other; positive is better whatever the metric."""

    other: str
    mean: float
    interval: tuple[float | None, float | None]
    """At least 95 % sure; an end of None is open: too few seeds for a bound. Zero lies outside
    exactly if the p-value is below alpha."""
    p_value: float
    """Two-sided, corrected over looks, arms and sizes."""
    n_pairs: int
    """Seeds that both arms have."""


@dataclass(frozen=True, slots=True)
class LabelSaving:
    """How many times more labels another arm needs for the same score."""

    other: str
    reach: Reach
    factor: float | None
    interval: tuple[float, float | None] | None
    """Over seeds; an upper end of None lies beyond the measured sizes."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One arm at one size."""

    size: int
    n_seeds: int
    mean: float | None
    interval: tuple[float, float] | None
    """Student's 95 % interval of the mean."""
    n_diverged: int
    n_collapsed: int
    n_missing: int
    """Planned runs without a result: unfinished or failed."""
    verdict: Verdict
    p_value: float | None = None
    """Of the difference that the verdict rests on."""
    differences: tuple[Difference, ...] = ()
    """Against the reference first, then against the other controls."""
    strongest: str | None = None
    """The control that the verdict rests on: the one that is hardest to beat; of an arm that is
    worse than all controls, the one that is closest."""
    label_saving: LabelSaving | None = None
    """Against the reference."""
    label_saving_strongest: LabelSaving | None = None
    """Against the strongest control; None where that is the reference."""
    margin: float | None = None
    """Differences smaller than this are practically none."""
    scope: str | None = None
    """What the verdict is about, such as "data like these"; None: the record does not say."""
    scores: dict[int, float] = field(default_factory=dict, hash=False)
    """Test score by seed."""
    recorded: dict[str, float] = field(default_factory=dict, hash=False)
    """Mean of every test score that runs recorded, by its name."""

    @property
    def deciding(self) -> Difference | None:
        """The difference that the verdict rests on."""
        return next((d for d in self.differences if d.other == self.strongest), None)


@dataclass(frozen=True, slots=True)
class ArmSummary:
    """One arm over all sizes."""

    name: str
    method: str
    control: str
    uses_xstar: bool
    sees_xstar_at_test: bool
    xstar_frac: float
    """The fraction of training rows that carry x*."""
    family: str
    """What arms have in common that differ in `xstar_frac` alone; empty for an arm of its own."""
    cells: tuple[Cell, ...]
    classical: bool = False
    """No network: shown beside the others, and never a control."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A candidate of tuning: settings of one arm and their score on validation rows."""

    arm: str
    number: int
    """0 is the arm as it was given."""
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
    """What the comparison says of it, where they were chosen elsewhere."""
    size: int | None = None
    n_seeds: int | None = None
    shared: bool = False
    """Whether controls have what was chosen for real x*."""
    candidates: tuple[Trial, ...] = ()

    @property
    def is_done(self) -> bool:
        """Whether the choice was made."""
        return self.note is not None or any(trial.chosen for trial in self.candidates)


@dataclass(frozen=True, slots=True)
class Summary:
    """A comparison, judged."""

    comparison: str
    headline: str
    """One sentence: which arm, which sizes, how much, how sure."""
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
    """None where arms have the settings they were given, and nobody says why."""
    looks: tuple[int, ...] = ()
    """Numbers of seeds at which the comparison is judged."""
