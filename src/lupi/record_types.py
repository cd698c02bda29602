"""What a comparison and its runs are, as evidence and report see them. Read by `lupi.records`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from lupi.design import Design, Looks
from lupi.facts import Fact
from lupi.files import read_rows


@dataclass(frozen=True, slots=True)
class Metric:
    """The figure a comparison is judged by."""

    name: str
    higher_is_better: bool = True
    selected_by: str | None = None
    """The validation score (higher is better) that the best epoch is chosen by, where this one
    takes too long for every epoch."""

    @property
    def of_an_epoch(self) -> "Metric":
        """The figure that epochs are judged by."""
        return self if self.selected_by is None else Metric(self.selected_by)


@dataclass(frozen=True, slots=True)
class Arm:
    """What evidence needs to know of an arm to compare it fairly."""

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
    """No network: shown beside the others, and never a control."""


RunId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
"""The name of a run's folder, right inside the comparison's: no path may stand there."""


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One cell of a comparison: where its record is, and what it is."""

    run_id: RunId
    arm: str
    size: int
    seed: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """Settings that tuning tries for an arm: its own (number 0), or with some changes."""

    arm: str
    number: int
    changes: dict[str, Any]
    """By the path of a setting, such as `settings.prior`."""
    size: int
    seeds: list[int]
    run_ids: list[RunId]
    """Of its trials, one per seed."""
    chosen: bool = False

    @property
    def name(self) -> str:
        """What the trials are called where an arm's name would stand."""
        return f"{self.arm} #{self.number}"


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What is on disk of one planned run."""

    plan: PlannedRun
    folder: Path
    result: dict[str, Any] | None = None
    """The content of result.json; None while the run is unfinished."""
    failure: str | None = None

    def metrics(self) -> tuple[list[dict[str, Any]], list[str]]:
        """Return the rows of metrics.jsonl, and warnings."""
        return read_rows(self.folder / "metrics.jsonl")


@dataclass(frozen=True, slots=True)
class ComparisonRecord:
    """A comparison as read from its folder."""

    folder: Path
    settings: dict[str, Any]
    arms: list[Arm]
    metric: Metric
    runs: list[RunRecord]
    warnings: list[str] = field(default_factory=list)
    task: dict[str, Any] = field(default_factory=dict)
    """The resolved data settings that all finished runs share; empty where none says."""
    candidates: list[Candidate] = field(default_factory=list)
    trials: list[RunRecord] = field(default_factory=list)
    """The runs that tuning chose by; each is planned under the name of its candidate."""
    design: Design | None = None
    """How the replicates were drawn; None: the record does not say."""
    looks: Looks | None = None
    """At how many seeds it is judged; None: at all that are planned."""

    facts: list[Fact] = field(default_factory=list)
    """What was found out about the data before the first run."""

    @property
    def finished(self) -> list[RunRecord]:
        """The runs that have a result."""
        return [run for run in self.runs if run.result is not None]
