"""How the replicates of a comparison were drawn: what a seed changes, and what it leaves alone.

A verdict speaks about data like these only if every seed draws its own rows. Two seeds that each
draw n of N rows share n / N of them on average, and are not independent to that extent.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field


@dataclass(frozen=True, slots=True)
class Design:
    """Where the rows of each seed come from."""

    n_pool: Annotated[int, Field(gt=0)]
    """Rows that training rows are drawn from. Where each seed splits all rows into training,
    validation and test rows, these are all rows."""
    test: Literal["per-seed", "fixed"]
    """Whether each seed draws its own test rows, or all seeds share the same."""
    n_test: int | None = None
    """Test rows of one seed."""
    groups: str | None = None
    """The column whose groups are never divided between training and test."""
    time: str | None = None
    """The column by whose order test rows follow training rows."""

    def overlap(self, size: int) -> float:
        """Return the expected share of `size` training rows that two seeds have in common."""
        return min(1.0, size / self.n_pool)

    def is_whole_pool(self, size: int) -> bool:
        """Whether every seed trains on the same rows."""
        return size >= self.n_pool

    def scope(self, size: int) -> str:
        """Say what a verdict at this size is about, to follow "holds for"."""
        if self.is_whole_pool(size):
            data = "this training set"
        elif self.time is not None:
            data = f"later rows, in order of {self.time}"
        elif self.groups is not None:
            data = f"new groups ({self.groups}) like these"
        else:
            data = "data like these"
        if self.test == "per-seed":
            return data
        n_test = "" if self.n_test is None else f"{self.n_test:,} "
        return f"{data}, measured on one fixed set of {n_test}test rows"
