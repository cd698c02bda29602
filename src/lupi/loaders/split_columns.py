"""Columns that determine how rows are divided: an official split, groups, time."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator, model_validator

from lupi.errors import LupiError
from lupi.loaders.division import (
    Codes,
    Division,
    check_classes,
    given_parts,
    number_groups,
    order_times,
)
from lupi.loaders.tables.encoder import days, is_date, is_number, texts
from lupi.settings import Settings, format_value
from lupi.subsets import PARTS, Part, Subgroups

if TYPE_CHECKING:
    import pandas as pd

MAX_SUBGROUPS = 12
PART_NAMES: dict[str, Part] = {
    **{part: part for part in PARTS},
    **dict.fromkeys(("dev", "valid", "validation"), "val"),
}


class DivisionSettings(Settings):
    """How rows are divided into training, validation and test rows."""

    split: str | None = None
    """Column with `train`, `val` or `test`: the official split, the same for every seed."""
    groups: str | None = None
    """Group column: rows with the same value, such as one person's, stay in one part."""
    time: str | None = None
    """Column of numbers or dates: training rows precede validation rows, these test rows. With
    `groups`, later rows of a group that has earlier ones are left out."""
    by: str | None = None
    """Column whose values are subgroups: results are shown for each of them, too. Of a number with
    many values, quarters of the rows. It may be a feature, privileged or ignored."""
    val_frac: float = Field(0.2, gt=0, lt=1)
    """Fraction of validation rows, unless a file or column gives them."""
    test_frac: float = Field(0.3, gt=0, lt=1)
    """Fraction of test rows, unless a file or column gives them."""

    @field_validator("split", "groups", "time", "by", mode="before")
    @classmethod
    def _name(cls, value: Any) -> Any:
        return str(value) if isinstance(value, int) else value

    @model_validator(mode="after")
    def _leaves_rows(self) -> "DivisionSettings":
        if self.val_frac + self.test_frac >= 1:
            raise ValueError("val_frac and test_frac must leave rows for training")
        if self.time is not None and self.split is not None:
            raise ValueError("use either time or split, not both")
        return self

    @property
    def dividers(self) -> dict[str, str]:
        """Columns that determine the split, by setting."""
        named = {"split": self.split, "groups": self.groups, "time": self.time}
        return {role: name for role, name in named.items() if name is not None}


def official_parts(values: "pd.Series[Any]") -> list[Part]:
    """Return the part of each row that a column names."""
    named = [(text or "").strip().lower() for text in texts(values)]
    unknown = next((name for name in named if name not in PART_NAMES), None)
    if unknown is not None:
        raise LupiError(
            f"split: column {values.name!r} has {format_value(unknown)}; expected train, val or "
            "test in every row"
        )
    parts = [PART_NAMES[name] for name in named]
    for part in ("train", "test"):
        if part not in parts:
            raise LupiError(f"split: column {values.name!r} has no row with {part!r}")
    return parts


def divide(
    labels: Mapping[Part, Codes],
    classes: Sequence[str],
    column: "Callable[[Part, str], pd.Series[Any]]",
    settings: DivisionSettings,
    target: str,
    together: str | None = None,
    order: Sequence[Part] = ("val", "test"),
) -> Division:
    """Return how the rows of `train` are divided into the parts that nothing gives.

    Args:
        labels: Class of each row of the given parts; not used without classes.
        classes: Names of the classes; empty for numbers.
        column: Function that returns a column of a given part.
        settings: Columns and fractions.
        target: Column to predict, for messages.
        together: Group column if it is not `settings.groups`.
        order: Order in which parts are drawn.
    """
    n_rows = len(labels["train"])
    wanted: dict[Part, float] = {"val": settings.val_frac, "test": settings.test_frac}
    drawn = {part: wanted[part] for part in order if part not in labels}
    if n_rows <= len(drawn):
        raise LupiError(f"{n_rows} rows are too few to draw training, validation and test rows")
    grouped, time = together or settings.groups, settings.time
    groups = times = None
    if grouped is not None:
        names = {part: texts(column(part, grouped)) for part in labels}
        groups = number_groups(names, f"column {grouped!r}")
    if time is not None:
        found = {part: _times(column(part, time)) for part in labels}
        times = order_times(found, repr(time))
    elif classes and grouped is None:
        check_classes(labels["train"], classes, target, len(drawn) + 1)
    every = np.concatenate([labels[part] for part in PARTS if part in labels])
    by = None
    if settings.by is not None:
        columns = [column(part, settings.by) for part in PARTS if part in labels]
        by = subgroups_of(columns, settings.by)
    named = {"groups": grouped, "time": time}
    return Division(
        every.astype(np.int64) if classes else np.zeros(len(every), dtype=np.int64),
        given_parts({part: len(labels[part]) for part in labels}),
        drawn,
        groups,
        times,
        names={role: name for role, name in named.items() if name is not None},
        by=by,
    )


def subgroups_of(columns: "Sequence[pd.Series[Any]]", name: str) -> Subgroups:
    """Return the subgroups that the values of a column are, or quarters of its numbers."""
    import pandas as pd

    values = pd.concat(columns, ignore_index=True)
    found = pd.Series([text or "missing" for text in texts(values)])
    names = tuple(sorted(set(found)))
    if is_number(values):
        if values.nunique() > MAX_SUBGROUPS:
            quarter = pd.qcut(values, 4, labels=False, duplicates="drop")
            ends = values.groupby(quarter).agg(["min", "max"])
            ranges = {i: f"{low:.4g} to {high:.4g}" for i, low, high in ends.itertuples()}
            found = quarter.map(ranges).fillna("missing")
        names = tuple(map(str, values.groupby(found).min().sort_values().index))
    if not 2 <= len(names) <= MAX_SUBGROUPS:
        raise LupiError(
            f"by: column {name!r} has {len(names)} values; expected 2 to {MAX_SUBGROUPS} "
            "subgroups: choose another column, or make one with fewer values"
        )
    place = {text: i for i, text in enumerate(names)}
    return Subgroups(name, names, np.array([place[text] for text in found], dtype=np.int64))


def _times(values: "pd.Series[Any]") -> NDArray[np.float64]:
    if is_number(values):
        found = values.to_numpy(dtype=np.float64, na_value=np.nan)
    elif is_date(values):
        found = days(values)
    else:
        raise LupiError(
            f"time: column {values.name!r} has {format_value(values.iloc[0])}; expected numbers or "
            "ISO dates such as 2024-05-26"
        )
    if not np.isfinite(found).all():
        row = int(np.flatnonzero(~np.isfinite(found))[0])
        raise LupiError(f"time: column {values.name!r} is empty or not finite in row {row + 1}")
    return found
