"""Settings of a table: files, roles of columns, and the split of its rows."""

import math
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from lupi.loaders.content import fingerprint_of
from lupi.loaders.files import EXCEL, JSON_LINES, PARQUET, Dialect, is_csv, suffix_of
from lupi.loaders.split_columns import DivisionSettings
from lupi.settings import TaskSettings

Kind = Literal["classification", "regression"]
Use = Literal["loss", "metrics"]


class TableSettings(DivisionSettings, Dialect, TaskSettings):
    """Files, roles of columns, and the split of rows."""

    name: Literal["table"] = "table"
    path: Path
    """CSV, JSON lines (.jsonl), Parquet (.parquet) or Excel (.xlsx)."""
    target: str
    """Column to predict."""
    privileged: tuple[str, ...] = Field(min_length=1)
    """Columns that are x*: known only in training."""
    features: tuple[str, ...] | None = Field(None, min_length=1)
    """Columns that are x; by default all others."""
    ignore: tuple[str, ...] = ()
    """Columns to drop, such as names or row numbers."""
    categorical: tuple[str, ...] = ()
    """Numeric columns to treat as categories."""
    kind: Literal["auto"] | Kind = "auto"
    """auto: classification for text, booleans or two values, regression for other numbers."""
    metric: str | None = None
    """Metric of the verdict; by default accuracy or r2. All metrics are recorded."""
    weights: str | None = None
    """Column with row weights: a row with weight 2 counts as two rows."""
    weights_in: tuple[Use, ...] | None = Field(None, min_length=1)
    """Where weights count: in the training `loss`, in the `metrics` of held-out rows, or, by
    default, in both. A weight that is known afterwards only may be for metrics."""
    class_weights: Literal["balanced"] | dict[str, float] | None = None
    """Class weights in the training loss (1 if not given), or `balanced`: all classes of a run's
    training rows count the same."""
    val: Path | None = None
    """A table with validation rows, the same for every seed."""
    test: Path | None = None
    """A table with test rows, the same for every seed."""
    items: str | None = None
    """Item column: rows with the same value are answers to one item, such as votes on an image.
    They stay in one part, and a held-out item is scored once."""
    gold: str | None = None
    """Column with the true target of an item, used to score held-out items; by default the majority
    of the answers, or the mean of numbers."""
    max_rows: int | None = Field(None, ge=10)
    """Rows of each file to work with, drawn at random, the same for every seed; by default at most
    a million, and fewer of a table with many columns. The others of a Parquet file take no memory.
    """
    missing_target: Literal["stop", "drop"] = "stop"
    """Rows whose target is missing or not finite: stop, or drop them."""
    content: str | None = None
    """Fingerprint of the files, filled in by lupi: a changed table is another run."""

    @field_validator(
        "target",
        "privileged",
        "features",
        "ignore",
        "categorical",
        "items",
        "gold",
        "weights",
        mode="before",
    )
    @classmethod
    def _names(cls, value: Any) -> Any:
        """Convert numbers to names, and a single name to a list."""
        if isinstance(value, list | tuple):
            return tuple(str(name) for name in value)
        return str(value) if isinstance(value, int) else value

    @field_validator("class_weights", mode="before")
    @classmethod
    def _classes(cls, value: Any) -> Any:
        return {str(name): w for name, w in value.items()} if isinstance(value, dict) else value

    @field_validator("class_weights")
    @classmethod
    def _positive(cls, value: Any) -> Any:
        for name, weight in value.items() if isinstance(value, dict) else ():
            if not 0 < weight < math.inf:
                raise ValueError(f"class {name!r}: got {weight}; expected a finite number over 0")
        return value

    @model_validator(mode="after")
    def _weights_have_a_column(self) -> Self:
        if self.weights_in is not None and self.weights is None:
            raise ValueError("weights_in has no effect without weights: set their column")
        return self

    @model_validator(mode="after")
    def _has_csv(self) -> Self:
        suffixes = {suffix_of(path) for path in self.files}
        unused = () if self.reads_csv else ("separator", "decimal")
        if suffixes <= {*PARQUET, *EXCEL}:
            unused = (*unused, "encoding")
        if suffixes <= {*PARQUET, *JSON_LINES}:
            unused = (*unused, "header")
        for name in unused:
            if getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"{name} has no effect: {self.path} is not CSV; remove it")
        return self

    @model_validator(mode="after")
    def _one_way_to_divide(self) -> Self:
        if self.split is not None and (self.val or self.test):
            raise ValueError("use either a split column or files for val and test, not both")
        if self.time is not None and self.items is not None:
            raise ValueError("use either time or items, not both")
        if self.by is not None and self.items is not None:
            raise ValueError("use either by or items, not both")
        if self.gold is not None and self.items is None:
            raise ValueError("gold needs a column with the items (`items`)")
        return self

    @property
    def files(self) -> tuple[Path, ...]:
        """All files the table is read from."""
        return tuple(path for path in (self.path, self.val, self.test) if path is not None)

    @property
    def reads_csv(self) -> bool:
        """Whether any file is CSV."""
        return any(map(is_csv, self.files))

    def weighs(self, use: Use) -> bool:
        """Whether rows have weights in the loss, or in metrics."""
        return self.weights is not None and (self.weights_in is None or use in self.weights_in)

    @property
    def together(self) -> str | None:
        """Column whose rows of equal value stay in one part."""
        return self.groups or self.items

    @property
    def dividers(self) -> dict[str, str]:
        """Columns that determine the split, by setting."""
        named = {"items": self.items, "gold": self.gold}
        return super().dividers | {role: name for role, name in named.items() if name is not None}

    @property
    def columns_beside(self) -> tuple[str, ...]:
        """Columns that are used but are not features."""
        weights = (self.weights,) if self.weights else ()
        return (self.target, *self.privileged, *self.dividers.values(), *weights)

    def with_content(self) -> Self:
        """Return the settings with the fingerprint of the files as they are now."""
        return self.model_copy(update={"content": fingerprint_of(self.files)})
