"""Cells that are no numbers in columns of numbers: they count as missing, and are named."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lupi.data.tables.encoder import is_number

if TYPE_CHECKING:
    import pandas as pd

MOSTLY = 0.9
"""A column whose cells are numbers to this extent is a column of numbers."""
N_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class BadCells:
    """Cells of a column of numbers that are none and count as missing."""

    column: str
    n: int
    n_rows: int
    examples: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """What was done with them."""
        shown = ", ".join(repr(text) for text in self.examples)
        return (
            f"column {self.column!r}: {self.n:,} of {self.n_rows:,} cells are no numbers "
            f"({shown}); the column counts as numbers, these cells as missing"
        )


def read_numbers(
    frame: "pd.DataFrame", columns: Sequence[str], decimal: str = "."
) -> "tuple[pd.DataFrame, list[BadCells]]":
    """Return a frame whose columns of numbers but for a few cells are numbers.

    Args:
        frame: as it was read.
        columns: those to look at.
        decimal: the decimal sign.
    """
    changed: dict[str, pd.Series[Any]] = {}
    bad: list[BadCells] = []
    for name in columns:
        values = frame[name]
        if is_number(values) or values.dtype.kind not in "OUT":
            continue
        given = values.dropna()
        if not len(given) or given.map(lambda value: isinstance(value, bool)).any():
            continue
        numbers = _numbers(values, decimal)
        is_bad = (numbers.isna() & values.notna()).to_numpy()
        if not 0 < is_bad.sum() <= (1 - MOSTLY) * len(given):
            continue
        changed[name] = numbers
        examples = tuple(dict.fromkeys(str(text) for text in values[is_bad]))[:N_EXAMPLES]
        bad.append(BadCells(name, int(is_bad.sum()), len(frame), examples))
    return (frame.assign(**changed) if changed else frame), bad


def _numbers(values: "pd.Series[Any]", decimal: str) -> "pd.Series[Any]":
    import pandas as pd

    text = values.map(lambda value: value.strip() if isinstance(value, str) else value)
    if decimal != ".":
        text = text.map(lambda v: v.replace(decimal, ".") if isinstance(v, str) else v)
    return pd.to_numeric(text, errors="coerce").astype("float64")
