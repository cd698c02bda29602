"""Facts about the data of a comparison, found before its first run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact that the user should check."""

    about: str
    """Subject in a word or two: `rows`, `classes`, `x*`."""
    text: str


N_NAMED = 10
"""Maximum number of names to list."""


def list_names(names: Sequence[str]) -> str:
    """Return names separated by commas, the first few if there are many."""
    more = len(names) - N_NAMED
    return ", ".join(names[:N_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def list_counts(counts: Mapping[str, int]) -> str:
    """Return names with their counts; for many names, the range of counts and a few names."""
    if len(counts) <= N_NAMED:
        return ", ".join(f"{name} {n:,}" for name, n in counts.items())
    low, high = min(counts.values()), max(counts.values())
    each = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    return f"{each} each of {list_names(list(counts))}"
