"""Types of comparisons and runs as evidence and report see them. `lupi.records` reads them."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from lupi.design import Design, Looks
from lupi.facts import Fact
from lupi.files import read_rows


@dataclass(frozen=True, slots=True)
class Metric:
    """The metric that a comparison is judged by."""

    name: str
    higher_is_better: bool = True
    selected_by: str | None = None
    """Validation score (higher is better) that selects the best epoch, if this metric is too slow
    or too coarse for that."""

    @property
    def of_an_epoch(self) -> "Metric":
        """Metric that selects the best epoch."""
        return self if self.selected_by is None else Metric(self.selected_by)


@dataclass(frozen=True, slots=True)
class Arm:
    """What is needed to compare an arm fairly."""

    name: str
    method: str
    control: str = "real"
    """real, shuffled, constant or random"""
    uses_xstar: bool = False
    sees_xstar_at_test: bool = False
    """True for an oracle only: never a fair competitor."""
    xstar_frac: float = 1.0
    """The fraction of training rows that carry x*."""
    family: str = ""
    """What arms have in common that differ in `xstar_frac` alone; empty for an arm of its own."""
    classical: bool = False
    """Whether it is a classical model: shown with the others, never a control."""


RunId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
"""Name of a run's folder inside that of the comparison; it can't be a path."""


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A planned run: name of its folder, arm, size and seed."""

    run_id: RunId
    arm: str
    size: int
    seed: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """Settings that tuning tries for an arm: the given ones (number 0), or with changes."""

    arm: str
    number: int
    changes: dict[str, Any]
    """Values by the path of a setting, such as `settings.prior`."""
    size: int
    seeds: list[int]
    run_ids: list[RunId]
    """Runs of its trials, one per seed."""
    chosen: bool = False

    @property
    def name(self) -> str:
        """Name of the trials, in place of an arm's name."""
        return f"{self.arm} #{self.number}"


@dataclass(frozen=True, slots=True)
class RunRecord:
    """Record of a planned run."""

    plan: PlannedRun
    folder: Path
    result: dict[str, Any] | None = None
    """Content of result.json; None if the run is unfinished."""
    failure: str | None = None

    def metrics(self) -> tuple[list[dict[str, Any]], list[str]]:
        """Return the rows of metrics.jsonl, and warnings."""
        return read_rows(self.folder / "metrics.jsonl")


@dataclass(frozen=True, slots=True)
class ComparisonRecord:
    """Record of a comparison."""

    folder: Path
    settings: dict[str, Any]
    arms: list[Arm]
    metric: Metric
    runs: list[RunRecord]
    warnings: list[str] = field(default_factory=list)
    task: dict[str, Any] = field(default_factory=dict)
    """Resolved settings of the task of all finished runs; empty if not known."""
    candidates: list[Candidate] = field(default_factory=list)
    trials: list[RunRecord] = field(default_factory=list)
    """Trials of tuning, planned under the names of their candidates."""
    design: Design | None = None
    """How the replicates were drawn; None if not recorded."""
    looks: Looks | None = None
    """Numbers of seeds at which it is judged; None: at all planned seeds."""

    facts: list[Fact] = field(default_factory=list)
    """Facts about the data, found before the first run."""

    @property
    def finished(self) -> list[RunRecord]:
        """The runs that have a result."""
        return [run for run in self.runs if run.result is not None]
