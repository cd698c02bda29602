"""Rows of a table with their targets, and how they are divided."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lupi.errors import LupiError
from lupi.loaders.division import Division
from lupi.loaders.split_columns import divide
from lupi.loaders.tables.encoder import texts
from lupi.loaders.tables.settings import TableSettings
from lupi.records import Design
from lupi.subsets import Part

if TYPE_CHECKING:
    import pandas as pd


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


def division_of(
    given: Mapping[Part, LabelledRows], classes: tuple[str, ...], settings: TableSettings
) -> Division:
    """Return how the rows of `train` are divided into the parts that nothing gives."""
    if settings.groups and settings.items:
        _check_items(given, settings.groups, settings.items)
    return divide(
        {part: rows.y for part, rows in given.items()},
        classes,
        lambda part, name: given[part].frame[name],
        settings,
        settings.target,
        settings.together,
    )


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


def design_of(
    given: Mapping[Part, LabelledRows], division: Division, settings: TableSettings
) -> Design:
    """Return the design of the comparison; held-out items count once."""
    if settings.items is None:
        return division.design
    test = division.draw(0)["test"]
    rows = given["test"] if "test" in given else given["train"].take(test)
    return replace(division.design, n_test=rows.frame[settings.items].nunique())
