"""Cells that are not numbers in numeric columns: they count as missing and are reported."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lupi.errors import shortened
from lupi.loaders.tables.encoder import MAX_CATEGORIES, ColumnKind, is_number

if TYPE_CHECKING:
    import pandas as pd

MOSTLY = 0.9
"""Minimum share of numbers in a numeric column."""
SOME = 0.5
"""Share of numbers above which a column of categories may be meant as numeric."""
FREE_TEXT = 0.5
"""Share of distinct texts above which a column holds names or sentences."""
N_EXAMPLES = 3
MAX_CELL = 80
"""Characters of an example that are printed."""


@dataclass(frozen=True, slots=True)
class BadCells:
    """Cells of a numeric column that are not numbers and count as missing."""

    column: str
    n: int
    n_rows: int
    examples: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """A sentence that reports them."""
        shown = ", ".join(repr(shortened(text, MAX_CELL)) for text in self.examples)
        return (
            f"column {self.column!r}: {self.n:,} of {self.n_rows:,} cells are not numbers "
            f"({shown}); the column is numeric, and these cells count as missing"
        )


def read_numbers(
    frame: "pd.DataFrame", columns: Sequence[str], decimal: str = "."
) -> "tuple[pd.DataFrame, list[BadCells]]":
    """Convert columns that are numeric except for a few cells.

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


def odd_columns(frame: "pd.DataFrame", kinds: Mapping[str, ColumnKind]) -> Iterator[str]:
    """Yield a sentence for each column that tells nothing, or may be other than it was taken for.

    Args:
        frame: rows of the table.
        kinds: what its columns were taken for; others are not looked at.
    """
    numbers = [name for name, kind in kinds.items() if kind == "number" and is_number(frame[name])]
    values = frame[numbers].to_numpy(dtype=np.float64, na_value=np.nan)
    varies = np.fmax.reduce(values, axis=0) > np.fmin.reduce(values, axis=0)
    plain = {name for name, has_values in zip(numbers, varies, strict=True) if has_values}
    for name, kind in kinds.items():
        if name in plain:
            continue
        given = frame[name].dropna()
        n_values = given.nunique()
        if n_values < 2:
            yield f"column {name!r} is {'constant' if n_values else 'empty'}"
        elif kind == "category" and n_values > max(MAX_CATEGORIES, FREE_TEXT * len(given)):
            yield (
                f"column {name!r} has {n_values:,} different texts in {len(given):,} rows: only "
                "texts that training rows have twice count; if these are names, ignore them"
            )
        elif kind == "category" and given.dtype.kind == "O":
            n_numbers = int(_numbers(given, ".").notna().sum())
            if n_numbers >= SOME * len(given):
                yield (
                    f"column {name!r} was taken for categories, as only {n_numbers:,} of "
                    f"{len(given):,} cells are numbers; correct the others if it holds numbers"
                )


def _numbers(values: "pd.Series[Any]", decimal: str) -> "pd.Series[Any]":
    import pandas as pd

    text = values.map(lambda value: value.strip() if isinstance(value, str) else value)
    if decimal != ".":
        text = text.map(lambda v: v.replace(decimal, ".") if isinstance(v, str) else v)
    return pd.to_numeric(text, errors="coerce").astype("float64")
