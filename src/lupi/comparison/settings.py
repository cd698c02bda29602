"""Settings of a comparison (arms, sizes, seeds), and of the runs that they stand for."""

from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import Field, SerializeAsAny, field_serializer, field_validator, model_validator

from lupi.comparison.tuning import TuningSettings
from lupi.core import Control
from lupi.errors import LupiError
from lupi.settings import Settings, TaskSettings, merge
from lupi.tasks.registry import parse_task
from lupi.train.learners import find_learner
from lupi.train.settings import RunSettings
from lupi.verdict.roles import REFERENCE_METHOD, parse_questions

MOST_SEEDS = 10_000
"""Protects against a typing error that would fill the memory."""


ControlName = Literal["shuffled", "constant", "random", "lexicon"]


class ControlSettings(Settings):
    """What a control changes of its arm: its own best settings."""

    settings: dict[str, Any] = Field(default_factory=dict)
    """Changes to the settings of the method."""
    network: dict[str, Any] = Field(default_factory=dict)
    """Changes to the network."""
    train: dict[str, Any] = Field(default_factory=dict)
    """Changes to the training."""
    search: dict[str, Any] | None = None
    """Ranges for tuning from these settings; by default those of the method."""


class ArmSettings(Settings):
    """A method with its settings; each control becomes an arm of its own, named `arm/control`."""

    method: str
    """A method or, if x is a vector, a classical model: see `lupi methods`."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Settings of the method: see `lupi methods NAME`."""
    controls: tuple[ControlName, ...] | dict[ControlName, ControlSettings] | None = None
    """Arms with an x* that says nothing about its row; lexicon: the words of a list. By default
    those of the method: see `lupi methods NAME`. A mapping gives controls their own best settings,
    `{shuffled: {settings: {prior: 0.7}}}`; in a list they have those of the arm."""
    xstar_frac: float = Field(1.0, ge=0, le=1)
    """Fraction of training rows that have x*."""
    xstar_fracs: tuple[Annotated[float, Field(ge=0, le=1)], ...] = ()
    """Several fractions, instead of one: each becomes an arm of its own, named `arm@4%`."""
    network: dict[str, Any] = Field(default_factory=dict)
    """Changes to the network of the comparison, such as a dropout tuned for this arm."""
    train: dict[str, Any] = Field(default_factory=dict)
    """Changes to the training of the comparison."""
    extra_sizes: tuple[Annotated[int, Field(ge=1)], ...] = ()
    """More sizes for this arm alone. Larger sizes of the plain arm bring the label-saving factor of
    a better method into range."""
    search: dict[str, Any] | None = None
    """Ranges for tuning, instead of those of the method: see `lupi methods NAME`."""

    @property
    def uses_xstar(self) -> bool:
        """Whether any training row of the arm shows its x*."""
        return find_learner(self.method).uses_xstar and self.xstar_frac > 0

    def of_controls(self) -> "dict[Control, ArmSettings]":
        """Return the settings of each control."""
        given = find_learner(self.method).controls if self.controls is None else self.controls
        if not isinstance(given, dict):
            return dict.fromkeys(given, self)
        return {name: self.changed(changes) for name, changes in given.items()}

    def changed(self, changes: ControlSettings) -> "ArmSettings":
        """Return the settings of a control."""
        parts = ("settings", "network", "train")
        update = {part: merge(getattr(self, part), getattr(changes, part)) for part in parts}
        search = self.search if changes == ControlSettings() else changes.search
        return self.model_copy(update={**update, "search": search})


class PaperSettings(Settings):
    """Published scores, shown beside the results and never judged."""

    source: str
    """Publication, and the conditions of its experiment; shown with the scores."""
    scores: dict[str, dict[int, float]]
    """Scores by arm and size, in the unit of the metric: an accuracy of 42.3 % is 0.423."""


class NamedArm(NamedTuple):
    """What settings of an arm stand for: one control, and one fraction of rows with x*."""

    name: str
    """Such as `het-dropout@4%/shuffled`."""
    key: str
    """Key of the settings, such as `het-dropout`."""
    control: Control
    settings: ArmSettings

    @property
    def is_candidate(self) -> bool:
        """Whether it trains with x* and predicts without: see `lupi.verdict.roles`."""
        learner = find_learner(self.settings.method)
        return self.settings.uses_xstar and not learner.sees_xstar_at_test and not learner.classical


class ComparisonSettings(Settings):
    """Arms x sizes x seeds."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    task: SerializeAsAny[TaskSettings]
    """The data, and what they mean."""
    network: dict[str, Any] = Field(default_factory=dict)
    """The student; all arms share it unless they change it."""
    train: dict[str, Any] = Field(default_factory=dict)
    """How students are trained."""
    train_by_size: dict[int, dict[str, Any]] = Field(default_factory=dict)
    """Changes to `train` for some sizes, such as a larger batch."""
    arms: dict[str, ArmSettings] = Field(min_length=1)
    """What is compared, by names of your choice."""
    sizes: tuple[int, ...] = Field(min_length=1)
    """Numbers of training rows; smaller sets are subsets of larger ones."""
    seeds: tuple[int, ...] = Field(min_length=1)
    """A list of seeds, or their number: 8 means 0 to 7. Add new ones at the end: an earlier look
    at the results saw the first ones."""
    margin: float | None = Field(None, gt=0, allow_inf_nan=False)
    """Differences below this are negligible: 0.01 is one point of accuracy. By default one point,
    or 1 % of the plain model's score for metrics such as errors."""
    questions: tuple[str, ...] = ()
    """Questions to ask first, in this order, such as `[het-dropout@150, het-dropout@mean]`: each
    is tested on its own, as long as all before it are claimed. Plan it before you see scores."""
    tuning: TuningSettings | str | None = None
    """How to choose the settings of each arm first, or a sentence on how they were chosen."""
    paper: PaperSettings | None = None
    """Scores of a publication with the same settings."""

    @field_validator("task", mode="before")
    @classmethod
    def _by_name(cls, raw: Any) -> Any:
        return raw if isinstance(raw, TaskSettings) else parse_task(raw)

    @field_serializer("task")
    def _as_written(self, task: TaskSettings) -> dict[str, Any]:
        return {"name": task.name, **task.model_dump(mode="json", exclude_unset=True)}

    @field_validator("sizes", mode="before")
    @classmethod
    def _one_size(cls, value: Any) -> Any:
        return (value,) if isinstance(value, int) else value

    @field_validator("seeds", mode="before")
    @classmethod
    def _count(cls, value: Any) -> Any:
        if not isinstance(value, int):
            return value
        if value > MOST_SEEDS:
            raise ValueError(f"at most {MOST_SEEDS:,} seeds")
        return tuple(range(value))

    @field_validator("sizes", "seeds")
    @classmethod
    def _distinct(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(value)) < len(value):
            raise ValueError("duplicate value: each may be given once")
        return value

    @field_validator("sizes")
    @classmethod
    def _in_order(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(sorted(value))

    @model_validator(mode="after")
    def _sizes_are_known(self) -> Self:
        extra = {size for arm in self.arms.values() for size in arm.extra_sizes}
        for size in self.train_by_size:
            if size not in {*self.sizes, *extra}:
                raise ValueError(f"train_by_size: {size} is not in `sizes`, {list(self.sizes)}")
        for size in extra.intersection(self.sizes):
            raise ValueError(f"extra_sizes: {size} is in `sizes` already, which all arms have")
        return self

    @model_validator(mode="after")
    def _arms_fit(self) -> Self:
        for key, arm in self.arms.items():
            for setting in ("controls", "xstar_fracs"):
                if getattr(arm, setting) and not find_learner(arm.method).uses_xstar:
                    raise LupiError(
                        f"arms.{key}.{setting}: {arm.method} does not use x*: drop `{setting}`"
                    )
            if arm.xstar_fracs and arm.xstar_frac != 1:
                raise LupiError(f"arms.{key}: give either `xstar_frac` or `xstar_fracs`, not both")
            if "lexicon" in (arm.controls or ()) and not getattr(self.task, "lexicon", None):
                raise LupiError(
                    f"arms.{key}.controls: lexicon needs task.lexicon, a file with a word list "
                    "(texts only)"
                )
        with_xstar = [a.name for a in self.named_arms() if a.control == "real" and a.is_candidate]
        sizes = {size for arm in self.arms.values() for size in self.sizes_of(arm)}
        parse_questions(self.questions, with_xstar, sorted(sizes))
        return self

    def named_arms(self) -> list[NamedArm]:
        """Return all arms: those with real x*, each followed by its controls."""
        arms = []
        for key, given in self.arms.items():
            named = {key: given}
            if given.xstar_fracs:
                named = {
                    f"{key}@{100 * frac:g}%": given.model_copy(update={"xstar_frac": frac})
                    for frac in sorted(set(given.xstar_fracs))
                }
            for name, arm in named.items():
                arms.append(NamedArm(name, key, "real", arm))
                if arm.uses_xstar:  # otherwise there is nothing to replace
                    arms += [
                        NamedArm(f"{name}/{control}", key, control, own)
                        for control, own in arm.of_controls().items()
                    ]
        return arms

    def sizes_of(self, arm: ArmSettings) -> list[int]:
        """Return the training-set sizes of an arm."""
        return sorted({*self.sizes, *arm.extra_sizes})


def run_settings(
    settings: ComparisonSettings, task: TaskSettings, arm: NamedArm, size: int, seed: int
) -> RunSettings:
    """Return the settings of a run.

    Args:
        settings: Settings of the comparison.
        task: Settings of its task, with the fingerprint of the data.
        arm: Arm to train.
        size: Number of training rows.
        seed: Seed of the run.
    """
    own = arm.settings
    train = merge(settings.train, settings.train_by_size.get(size, {}))
    raw = {
        "task": task,
        "network": merge(settings.network, own.network),
        "train": merge(train, own.train),
        "method": own.method,
        "settings": own.settings,
        "control": arm.control,
        "xstar_frac": own.xstar_frac,
        "size": size,
        "seed": seed,
    }
    try:
        return RunSettings.parse(raw, "")
    except LupiError as error:
        # No arm is to blame for a mistake in the settings that all arms share.
        shared = {"network": settings.network, "train": train}
        RunSettings.parse({**raw, **shared, "method": REFERENCE_METHOD, "settings": {}}, "")
        raise LupiError(f"arm {arm.name}: {error}") from None
