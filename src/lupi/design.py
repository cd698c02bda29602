"""The design of a comparison: how its replicates are drawn, and when they are looked at.

A verdict speaks about data like these only if every seed draws its own rows. Two seeds that each
draw n of N rows share n / N of them on average, and are not independent to that extent. And who
looks at the results, and adds seeds if they are not clear, has more than one chance to be wrong.
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

    def correlation(self, size: int) -> float:
        """Return how far the differences between arms of two seeds are correlated.

        The excess risk of a trained model is quadratic in what its rows add at random, so a share
        o of common rows makes a correlation of about o**2, which simulations confirm (see
        docs/verdict.md). Of the whole pool nothing is drawn: what is said there is about this
        training set, for which seeds are independent.
        """
        return 0.0 if self.is_whole_pool(size) else self.overlap(size) ** 2

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


@dataclass(frozen=True, slots=True)
class Looks:
    """At how many seeds a comparison is judged, and how much error each look may spend.

    The first look spends `first_share` of the allowed error, every later one half of what is
    left. So seeds may be added at any time: all looks together stay within it (Bonferroni).
    """

    counts: tuple[Annotated[int, Field(gt=0)], ...]
    """Numbers of seeds, increasing."""
    first_share: Annotated[float, Field(gt=0, lt=1)] = 0.8

    @classmethod
    def until_decided(cls, max_seeds: int) -> "Looks":
        """Return looks at 7, 9, 12, 16, ... seeds, up to a budget."""
        counts = [min(7, max_seeds)]
        while counts[-1] < max_seeds:
            counts.append(min(max_seeds, -(-counts[-1] * 4 // 3) if counts[-1] > 7 else 9))
        return cls(tuple(counts), first_share=0.5)

    def after(self, earlier: "Looks | None", n_seen: int) -> "Looks":
        """Return these looks after those of an earlier plan that already took place.

        Args:
            earlier: of the plan that was followed before, if any.
            n_seen: the most seeds that it had results of.
        """
        seen = tuple(n for n in (earlier.counts if earlier else ()) if n <= n_seen)
        if earlier is None or not seen:
            return self
        return Looks((*seen, *(n for n in self.counts if n > seen[-1])), earlier.first_share)

    def reached(self, n_seeds: int) -> list[tuple[int, float]]:
        """Return the looks that so many seeds allow, with the share of the error of each.

        Before the first look there is a preliminary one, at the seeds there are.
        """
        shares = [self.first_share]
        while len(shares) < len(self.counts):
            shares.append((1 - sum(shares)) / 2)
        found = [look for look in zip(self.counts, shares, strict=True) if look[0] <= n_seeds]
        return found or [(n_seeds, self.first_share)]
