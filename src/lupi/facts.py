"""What was found out about the data of a comparison before its first run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that a reader should check."""

    about: str
    """A word or two: `rows`, `classes`, `x*`."""
    text: str


N_NAMED = 10
"""Names that are written out, at most."""


def list_names(names: Sequence[str]) -> str:
    """Return names in a row, the first few of many."""
    more = len(names) - N_NAMED
    return ", ".join(names[:N_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def list_counts(counts: Mapping[str, int]) -> str:
    """Return names with their counts; of many, the smallest and largest count and a few names."""
    if len(counts) <= N_NAMED:
        return ", ".join(f"{name} {n:,}" for name, n in counts.items())
    low, high = min(counts.values()), max(counts.values())
    each = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    return f"{each} each of {list_names(list(counts))}"
