"""Several answers to one item, one row each; held-out items are scored once.

Training rows are single answers. A held-out item is one row, whose target is the item's true target
(`gold`), or the majority or the mean of its answers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lupi.errors import LupiError
from lupi.loaders.division import Codes
from lupi.loaders.tables.encoder import is_number, texts
from lupi.loaders.tables.parts import LabelledRows
from lupi.loaders.tables.settings import TableSettings
from lupi.subsets import Part


@dataclass(frozen=True, slots=True)
class Answers:
    """The columns with the item of each answer and with its true target."""

    items: str
    gold: str | None
    classes: tuple[str, ...]
    """Empty for numbers."""

    def scored_once(self, rows: LabelledRows) -> LabelledRows:
        """Return the first row of each item, with the item's target."""
        names = np.array(texts(rows.frame[self.items]), dtype=object).astype(str)
        _, first, item = np.unique(names, return_index=True, return_inverse=True)
        order = np.sort(first)
        number = np.empty(len(first), dtype=np.int64)  # items in the order of their first rows
        number[np.argsort(first)] = np.arange(len(first))
        once = rows.take(order)
        if self.gold is not None:
            return once._replace(y=true_targets(once, self.gold, self.classes))
        return once._replace(y=self._together(rows.y, number[item], len(order)))

    def describe(self, rows: LabelledRows) -> str:
        """Describe the number of items, and the target of held-out items."""
        n_items = rows.frame[self.items].nunique()
        together = "the majority of their answers" if self.classes else "the mean of their answers"
        return (
            f"{n_items:,} ({self.items}), {len(rows.y) / n_items:.3g} answers each; held-out items "
            f"are scored once, against {self.gold or together}"
        )

    def _together(self, y: NDArray[Any], item: Codes, n_items: int) -> NDArray[Any]:
        """Return the majority (ties: the more frequent class) or mean of each item's answers."""
        if not self.classes:
            means: NDArray[Any] = np.bincount(item, weights=y) / np.bincount(item)
            return means
        votes = np.zeros((n_items, len(self.classes)))
        np.add.at(votes, (item, y), 1.0)
        majority: NDArray[Any] = (votes + votes.mean(0) / (1 + votes.sum())).argmax(1)
        return majority


def answers_of(
    given: Mapping[Part, LabelledRows], classes: tuple[str, ...], settings: TableSettings
) -> Answers | None:
    """Return how held-out items are scored; None if there are no items."""
    if settings.items is None:
        return None
    all_drawn = len(given) < len(("train", "val", "test"))
    for part, rows in given.items():
        if settings.gold is not None and (part != "train" or all_drawn):
            true_targets(rows, settings.gold, classes)
    return Answers(settings.items, settings.gold, classes)


def true_targets(rows: LabelledRows, column: str, classes: tuple[str, ...]) -> NDArray[Any]:
    """Return the true targets of rows; raise an error for invalid ones."""
    values = rows.frame[column]
    if values.isna().any():
        raise LupiError(
            f"gold: column {column!r} is empty in {int(values.isna().sum())} of {len(values)} rows "
            "that may be held out: fill it, or use a split column to keep those rows for training"
        )
    if not classes:
        if not is_number(values):
            raise LupiError(
                f"gold: the target is a number; column {column!r} has {values.iloc[0]!r}"
            )
        return values.to_numpy(dtype=np.float64)
    place = {name: i for i, name in enumerate(classes)}
    found = [text or "" for text in texts(values)]
    unknown = next((text for text in found if text not in place), None)
    if unknown is not None:
        raise LupiError(f"gold: {unknown!r} in column {column!r} does not occur among the answers")
    return np.array([place[text] for text in found], dtype=np.int64)
