"""Records of comparisons and runs on disk: write and read them. Does not import torch.

ARCHITECTURE.md lists the files. They are complete even if a process is killed at any moment: see
`lupi.files`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lupi.design import Design as Design
from lupi.design import Looks as Looks
from lupi.errors import LupiError
from lupi.facts import Fact
from lupi.files import (
    MAX_RECORD,
    DamagedRecordError,
    read_json,
    read_rows,
    write_json,
    write_sealed,
)
from lupi.limits import read_regular
from lupi.settings import fingerprint


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
    confirmation: "ComparisonRecord | None" = None
    """Fresh seeds for the arm that helps and its controls, if they were run."""

    @property
    def finished(self) -> list[RunRecord]:
        """The runs that have a result."""
        return [run for run in self.runs if run.result is not None]


FORMAT = 1
CONFIRMATION = "confirmation"
"""Folder of the comparison that confirms another, inside that of the other."""
STUDENT = "checkpoint/student.safetensors"
HELPERS = "checkpoint/method.safetensors"


def write_comparison(
    folder: Path,
    settings: Mapping[str, Any],
    arms: Iterable[Arm],
    metric: Metric,
    plan: Iterable[PlannedRun],
    warnings: Iterable[str] = (),
    candidates: Iterable[Candidate] = (),
    design: Design | None = None,
    looks: Looks | None = None,
    facts: Iterable[Fact] = (),
) -> None:
    """Write comparison.json: settings, arms, planned runs, and facts about the data."""
    document = {
        "format": FORMAT,
        "settings": dict(settings),
        "arms": [asdict(arm) for arm in arms],
        "metric": asdict(metric),
        "runs": [asdict(run) for run in plan],
        "warnings": list(warnings),
        "candidates": [asdict(candidate) for candidate in candidates],
        "design": None if design is None else asdict(design),
        "looks": None if looks is None else asdict(looks),
        "facts": [asdict(fact) for fact in facts],
    }
    write_json(folder / "comparison.json", document)


class _Given(BaseModel):
    """Settings of a comparison whose types are checked when they are read."""

    task: dict[str, Any] = {}
    questions: list[Any] | None = None


class _Planned(BaseModel):
    """Expected content of comparison.json."""

    model_config = ConfigDict(allow_inf_nan=False)

    settings: _Given
    arms: list[Arm]
    metric: Metric
    runs: list[PlannedRun]
    warnings: list[str] = []
    candidates: list[Candidate] = []
    design: Design | None = None
    looks: Looks | None = None
    facts: list[Fact] = []


class _Result(BaseModel):
    """Entries of result.json whose types are checked when it is read."""

    model_config = ConfigDict(strict=True)

    status: str = ""
    metrics: dict[str, dict[str, float | None]] = {}
    trivial: dict[str, float | None] = {}
    collapsed: bool | None = None


def default_folder(name: str) -> Path:
    """Return the default folder of a comparison."""
    return Path("runs") / name


def read_comparison(folder: Path) -> ComparisonRecord:
    """Read a comparison and the runs it planned; unreadable results become warnings."""
    path = folder / "comparison.json"
    if not path.exists():
        raise LupiError(
            f"{folder} holds no comparison (no comparison.json); "
            "give the folder that `lupi compare` or `lupi demo` wrote, such as runs/demo"
        )
    document = read_json(path)
    if document.get("format") != FORMAT:
        raise LupiError(
            f"{path} has record format {document.get('format')!r}, this lupi reads {FORMAT}; "
            "use the version of lupi that wrote it"
        )
    try:
        planned = _Planned.model_validate(document)
        its_trials = planned_trials(planned.candidates)
    except ValueError as error:
        reason = "a trial has no seed"
        if isinstance(error, ValidationError):
            reason = first_error(error)
        raise DamagedRecordError(f"{path} is not a comparison record: {reason}") from None
    warnings = planned.warnings
    runs = read_runs(folder, planned.runs, warnings)
    trials = read_runs(folder, its_trials, warnings)
    task = _check_belonging(runs, {arm.name: arm for arm in planned.arms}, warnings)
    return ComparisonRecord(
        folder,
        document["settings"],
        planned.arms,
        planned.metric,
        runs,
        warnings,
        task,
        planned.candidates,
        trials,
        planned.design,
        planned.looks,
        planned.facts,
        _read_confirmation(folder / CONFIRMATION, warnings),
    )


def _read_confirmation(folder: Path, warnings: list[str]) -> ComparisonRecord | None:
    if not (folder / "comparison.json").exists():
        return None
    try:
        return read_comparison(folder)
    except LupiError as error:
        warnings.append(f"{error}; the confirmation is left out: run --confirm again")
        return None


def first_error(error: ValidationError) -> str:
    """Return a message about the first invalid value."""
    detail = error.errors(include_input=False)[0]
    return f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}"


def read_result(folder: Path) -> dict[str, Any]:
    """Read the result of a finished run."""
    path = folder / "result.json"
    result = read_json(path)
    if result.get("format") != FORMAT:
        raise DamagedRecordError(
            f"{path} has record format {result.get('format')!r}, this lupi reads {FORMAT}"
        )
    try:
        _Result.model_validate(result)
    except ValidationError as error:
        raise DamagedRecordError(
            f"{path} can't be read as a record: {first_error(error)}"
        ) from None
    return result


def write_result(folder: Path, result: Mapping[str, Any]) -> None:
    """Write the result of a run, with its checksum: the run is finished."""
    write_sealed(folder / "result.json", result)


def read_finished_result(folder: Path, settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the result of a run with these settings; None if there is none yet.

    Raise a `DamagedRecordError` if it can't be read, or belongs to other settings.
    """
    if not (folder / "result.json").exists():
        return None
    result, path = read_result(folder), folder / "settings.json"
    recorded = read_json(path)
    has_task = isinstance(recorded.get("task"), dict)
    if not has_task or run_identity(recorded) != run_identity(settings):
        raise DamagedRecordError(f"{path} was changed or is of another run")
    return result


def planned_trials(candidates: Iterable[Candidate]) -> list[PlannedRun]:
    """Return the trials of candidates."""
    return [
        PlannedRun(run_id, candidate.name, candidate.size, seed)
        for candidate in candidates
        for seed, run_id in zip(candidate.seeds, candidate.run_ids, strict=True)
    ]


def read_runs(folder: Path, plan: Iterable[PlannedRun], warnings: list[str]) -> list[RunRecord]:
    """Read the records of planned runs; add a warning for each that can't be read."""
    return [_read_run(folder / run.run_id, run, warnings) for run in plan]


ADDED_TO_TRAINING = {"accumulate": 1, "device": "auto"}
"""Settings of training that are newer than some records, with the values of those runs."""


def run_identity(settings: Mapping[str, Any]) -> str:
    """Return the identity of a run's resolved settings: the name of its folder."""
    resolved = {**settings, "task": _data_of(settings["task"])}
    # Newer settings are part of the identity only if they differ from what older runs had.
    if not resolved.get("trial"):
        resolved.pop("trial", None)
    if isinstance(train := resolved.get("train"), Mapping):
        resolved["train"] = {k: v for k, v in train.items() if ADDED_TO_TRAINING.get(k) != v}
    return fingerprint(resolved)


def _data_of(task: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a task without those that change no result (cache, decoders).

    `max_rows` and `by` are newer than some records, which have all rows and no subgroups.
    """
    without_effect = {"cache", "decoders", *(k for k in ("max_rows", "by") if task.get(k) is None)}
    return {key: value for key, value in task.items() if key not in without_effect}


def _read_run(folder: Path, plan: PlannedRun, warnings: list[str]) -> RunRecord:
    result = None
    if (folder / "result.json").exists():
        try:
            result = read_result(folder)
        except LupiError as error:
            warnings.append(f"{error}; the run counts as unfinished: {_RUN_AGAIN}")
    failure, text = folder / "failure.txt", None
    if failure.is_file() and result is None:
        try:
            text = read_regular(failure, MAX_RECORD).decode("utf-8", "replace")
        except OSError as error:
            text = f"{failure} can't be read: {error}"
    return RunRecord(plan, folder, result, text)


_RUN_AGAIN = "run the comparison again to repeat it; its files are then kept in `damaged`"


def _check_belonging(
    runs: list[RunRecord], arms: Mapping[str, Arm], warnings: list[str]
) -> dict[str, Any]:
    """Remove, in place, results of other settings than planned; return the settings of the data.

    Raise an error if results are of two datasets.
    """
    unknown: list[RunRecord] = []
    first: tuple[RunRecord, dict[str, Any]] | None = None
    for i, run in enumerate(runs):
        if run.result is None:
            continue
        path = run.folder / "settings.json"
        try:
            settings = read_json(path)
            reason = _mismatch(settings, run.plan, arms.get(run.plan.arm))
        except LupiError as error:
            if not path.exists():
                unknown.append(run)
                continue
            reason = f"can't be read ({error})"
        if reason:
            warnings.append(f"{path} {reason}; the run counts as unfinished: {_RUN_AGAIN}")
            runs[i] = replace(run, result=None)
            continue
        task = _data_of(settings["task"])
        if first is None:
            first = run, task
        elif task != first[1]:
            raise LupiError(
                f"{run.folder.parent} holds runs on two datasets: {_differing(first[1], task)} in "
                f"{first[0].plan.run_id} and {_differing(task, first[1])} in {run.plan.run_id}; "
                "keep them in comparisons of their own"
            )
    if unknown:
        warnings.append(
            f"{len(unknown)} results count, but nothing says that they belong here, as their "
            f"settings.json is missing; the first is {unknown[0].folder}"
        )
    return first[1] if first else {}


def _mismatch(settings: Mapping[str, Any], plan: PlannedRun, arm: Arm | None) -> str:
    """Return how a run differs from its plan; an empty string if it does not."""
    planned: dict[str, Any] = {"size": plan.size, "seed": plan.seed}
    if arm is not None:
        planned |= {"method": arm.method, "control": arm.control}
    for key, value in planned.items():
        if settings.get(key) != value:
            return f"is of another run: its {key} is {settings.get(key)!r}, planned was {value!r}"
    if not isinstance(settings.get("task"), dict) or run_identity(settings) != plan.run_id:
        return "was changed or is of another run: its folder has another name than its settings"
    return ""


def _differing(task: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Return the settings of a task that differ from those of another, as text."""
    return ", ".join(f"{key} {task[key]!r}" for key in task if task[key] != other.get(key))


def find_run(folder: Path) -> Path:
    """Return the folder of a finished run: this one, or the only one below it."""
    if (folder / "result.json").exists():
        return folder
    runs = sorted(path.parent for path in folder.glob("*/result.json"))
    if not runs:
        raise LupiError(
            f"{folder} holds no finished run (no result.json); "
            "give a folder that `lupi train` or `lupi compare` wrote below runs/"
        )
    if len(runs) > 1:
        raise LupiError(f"{folder} holds {len(runs)} runs; give one of them, such as {runs[0]}")
    return runs[0]
