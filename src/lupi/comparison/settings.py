"""What can be set of a comparison: arms, sizes, seeds."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from lupi.comparison.tuning import TuningSettings
from lupi.settings import Settings

MOST_SEEDS = 10_000
"""More would never end; and a slip of the finger must not fill the memory."""


class ArmSettings(Settings):
    """A method with its settings; each control becomes an arm of its own, named `arm/control`."""

    method: str
    settings: dict[str, Any] = Field(default_factory=dict)
    """Of the method: see `lupi methods NAME`."""
    controls: tuple[Literal["shuffled", "constant", "random", "lexicon"], ...] = ()
    """The same arm again, with x* that tells nothing of its row; lexicon: the words of a list."""
    xstar_frac: float = Field(1.0, ge=0, le=1)
    """The fraction of training rows that carry x*."""
    xstar_fracs: tuple[Annotated[float, Field(ge=0, le=1)], ...] = ()
    """Several fractions, instead of one: each becomes an arm of its own, named `arm@4%`."""
    network: dict[str, Any] = Field(default_factory=dict)
    """What this arm has other than the comparison's network, such as its own tuned dropout."""
    train: dict[str, Any] = Field(default_factory=dict)
    """What this arm has other than the comparison's training."""
    extra_sizes: tuple[Annotated[int, Field(ge=1)], ...] = ()
    """Sizes of this arm alone, beyond the comparison's. Larger ones of the plain arm bring the
    label-saving factor of a method that wins into range."""
    search: dict[str, Any] | None = None
    """Where tuning looks, instead of the method's own ranges: see `lupi methods NAME`."""

    def fractions(self, name: str) -> list[tuple[str, "ArmSettings"]]:
        """Return the arms this one stands for, with their names: itself, or one per fraction."""
        if not self.xstar_fracs:
            return [(name, self)]
        return [
            (f"{name}@{100 * frac:g}%", self.model_copy(update={"xstar_frac": frac}))
            for frac in sorted(set(self.xstar_fracs))
        ]


class PaperSettings(Settings):
    """Published scores, to be shown beside ours: quoted, never judged."""

    source: str
    """Where they stand and under which conditions they were got; shown with them."""
    scores: dict[str, dict[int, float]]
    """Arm, size, score as the metric counts it: an accuracy of 42.3 % is 0.423."""


class ComparisonSettings(Settings):
    """Arms x sizes x seeds."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    task: dict[str, Any]
    network: dict[str, Any] = Field(default_factory=dict)
    train: dict[str, Any] = Field(default_factory=dict)
    train_by_size: dict[int, dict[str, Any]] = Field(default_factory=dict)
    """What training sets of a size have other than `train`, such as a larger batch."""
    arms: dict[str, ArmSettings] = Field(min_length=1)
    sizes: tuple[int, ...] = Field(min_length=1)
    """Numbers of training rows; the small sets are parts of the large ones."""
    seeds: tuple[int, ...] = Field(min_length=1)
    """A list, or how many: 8 stands for 0 to 7."""
    margin: float | None = Field(None, gt=0, allow_inf_nan=False)
    """A difference below this is practically none: 0.01 is one point of accuracy. By default one
    point, or 1 % of the plain model's score for metrics such as errors."""
    tuning: TuningSettings | str | None = None
    """Choose each arm's settings first; or a sentence that says how they were chosen."""
    paper: PaperSettings | None = None
    """Scores of a publication whose settings this comparison has."""

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
