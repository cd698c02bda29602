"""The answer to "did x* help?" as data: everything a report or a program reads."""

from dataclasses import dataclass
from typing import Any, Literal

Word = Literal[
    "reference", "helps", "hurts", "no detectable difference", "underpowered", "collapsed"
]
"""A verdict. `reference` stands for the plain arm itself, which others are held against."""

Reach = Literal["measured", "beyond range", "below range", "unknown"]
"""Whether the reference's learning curve reaches the arm's score inside the measured sizes."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Paired difference over seeds, arm minus other; positive is better whatever the metric."""

    other: str
    mean: float
    interval: tuple[float, float] | None
    """BCa bootstrap interval; None with fewer than two seeds or without spread."""
    p_value: float | None
    """Two-sided exact sign-flip test, not corrected."""


@dataclass(frozen=True, slots=True)
class LabelSaving:
    """How many times more labels the reference needs for the same score."""

    reach: Reach
    factor: float | None
    interval: tuple[float, float | None] | None
    """Bootstrap over seeds; an upper end of None lies beyond the measured sizes."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One arm at one size."""

    size: int
    n_seeds: int
    mean: float | None
    interval: tuple[float, float] | None
    n_diverged: int
    n_collapsed: int
    n_missing: int
    """Planned runs without a result: unfinished or failed."""
    verdict: Word
    p_value: float | None
    """The largest p of the comparisons the verdict rests on, Holm-corrected over sizes."""
    differences: tuple[Difference, ...]
    """Against the reference first, then against the other controls."""
    strongest: str | None
    """The name of the best-scoring control: what x* must beat to get credit."""
    label_saving: LabelSaving | None


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
class Tried:
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
    candidates: tuple[Tried, ...] = ()

    @property
    def is_done(self) -> bool:
        """Whether the choice was made."""
        return self.note is not None or any(tried.chosen for tried in self.candidates)


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
