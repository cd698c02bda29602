"""Parts of a table: rows that a file or a column gives, and how the others are drawn."""

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lupi.errors import LupiError
from lupi.loaders.tables.division import Codes, Division, Part, check_classes
from lupi.loaders.tables.encoder import days, is_date, is_number, texts
from lupi.loaders.tables.settings import TableSettings
from lupi.records import Design
from lupi.settings import format_value

if TYPE_CHECKING:
    import pandas as pd

PARTS: tuple[Part, ...] = ("train", "val", "test")


class LabelledRows(NamedTuple):
    """Rows with their targets: classes (N,) as integers, or numbers (N,)."""

    frame: "pd.DataFrame"
    y: NDArray[Any]
    weights: NDArray[np.float64] | None = None
    """How much each row counts, (N,); None: the table does not say."""

    def take(self, rows: NDArray[np.int64]) -> "LabelledRows":
        """Return some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        return LabelledRows(self.frame.iloc[rows], self.y[rows], weights)


def official_split(frame: "pd.DataFrame", column: str) -> "dict[Part, pd.DataFrame]":
    """Return the rows of each part that a column names."""
    named = [(text or "").strip().lower() for text in texts(frame[column])]
    unknown = next((name for name in named if name not in PARTS), None)
    if unknown is not None:
        raise LupiError(
            f"split: column {column!r} has {format_value(unknown)}; expected train, val or test in "
            "every row"
        )
    frames = {part: frame[[name == part for name in named]] for part in PARTS}
    for part in ("train", "test"):
        if not len(frames[part]):
            raise LupiError(f"split: column {column!r} has no row with {part!r}")
    return {part: some for part, some in frames.items() if len(some)}


def division_of(
    given: Mapping[Part, LabelledRows], classes: tuple[str, ...], settings: TableSettings
) -> Division:
    """Return how the rows of `train` are divided into the parts that nothing gives."""
    rows = given["train"]
    wanted: dict[Part, float] = {"val": settings.val_frac, "test": settings.test_frac}
    fracs = {part: frac for part, frac in wanted.items() if part not in given}
    labels = rows.y if classes else np.zeros(len(rows.y), dtype=np.int64)
    groups = time = None
    if settings.together is not None:
        groups = _groups(given, settings.together)
        if settings.groups and settings.items:
            _check_items(given, settings.groups, settings.items)
    elif settings.time is not None:
        time = _times(given, settings.time)
    elif classes:
        check_classes(labels, classes, settings.target, len(fracs) + 1)
    if len(rows.y) <= len(fracs):
        raise LupiError(f"{settings.path} has {len(rows.y)} rows, too few to split")
    return Division(len(rows.y), fracs, labels, groups, time)


def _groups(given: Mapping[Part, LabelledRows], column: str) -> Codes:
    """Return the group of each row of `train`; none may have rows in another given part."""
    names = {part: texts(rows.frame[column]) for part, rows in given.items()}
    for part, of_part in names.items():
        if None in of_part:
            raise LupiError(
                f"groups: column {column!r} is empty in row {of_part.index(None) + 1} of {part}"
            )
    seen: dict[str | None, Part] = {}
    for part, of_part in names.items():
        for name in dict.fromkeys(of_part):
            if seen.setdefault(name, part) != part:
                raise LupiError(
                    f"groups: {name!r} has rows in {seen[name]} and in {part}; a group must not "
                    "be divided"
                )
    number = {name: i for i, name in enumerate(dict.fromkeys(names["train"]))}
    return np.array([number[name] for name in names["train"]], dtype=np.int64)


def _check_items(given: Mapping[Part, LabelledRows], groups: str, items: str) -> None:
    """Refuse an item that is in two groups: its answers could be divided."""
    group_of: dict[str | None, str | None] = {}
    for rows in given.values():
        for item, group in zip(texts(rows.frame[items]), texts(rows.frame[groups]), strict=True):
            if group_of.setdefault(item, group) != group:
                raise LupiError(
                    f"items: {item!r} is in the groups {group_of[item]!r} and {group!r} of "
                    f"{groups!r}; all answers to an item must be in one"
                )


def _times(given: Mapping[Part, LabelledRows], column: str) -> NDArray[np.float64]:
    """Return the time of each row of `train`; later parts that are given must be later."""
    times = {part: _numbers_of(rows.frame[column]) for part, rows in given.items()}
    order = [part for part in PARTS if part in times]
    for earlier, later in pairwise(order):
        if times[earlier].max() >= times[later].min():
            raise LupiError(
                f"time: some {later} rows are not later than all {earlier} rows by {column!r}"
            )
    return times["train"]


def _numbers_of(values: "pd.Series[Any]") -> NDArray[np.float64]:
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


def design_of(
    given: Mapping[Part, LabelledRows], division: Division, settings: TableSettings
) -> Design:
    """Return the design of the comparison."""
    parts = division.draw(0)
    test = given["train"].take(parts["test"]) if "test" in parts else given["test"]
    in_time_order = settings.time is not None
    return Design(
        n_pool=len(parts["train"]) if in_time_order else division.n_rows,
        test="per-seed" if "test" in parts and not in_time_order else "fixed",
        n_test=len(test.y) if settings.items is None else test.frame[settings.items].nunique(),
        groups=settings.together,
        time=settings.time,
    )
