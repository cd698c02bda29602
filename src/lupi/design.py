"""The design of a comparison: how its replicates are drawn, and when results are looked at.

A verdict is about data like these only if every seed draws its own rows. Two seeds that each draw
n of N rows share n / N of them on average, and are not independent to that extent. Looking at the
results, and adding seeds if they are not clear, gives more than one chance to be wrong.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field


@dataclass(frozen=True, slots=True)
class Design:
    """How the rows of each seed are drawn."""

    n_pool: Annotated[int, Field(gt=0)]
    """Number of rows that training rows are drawn from: all rows, if each seed splits them into
    training, validation and test rows."""
    test: Literal["per-seed", "fixed"]
    """Whether each seed draws its own test rows, or all seeds share the same."""
    n_test: int | None = None
    """Number of test rows of one seed."""
    groups: str | None = None
    """Column whose groups are never divided between training and test."""
    time: str | None = None
    """Column by which training rows precede test rows."""

    def overlap(self, size: int) -> float:
        """Return the expected share of `size` training rows that two seeds have in common."""
        return min(1.0, size / self.n_pool)

    def correlation(self, size: int) -> float:
        """Return the correlation between the differences of two seeds.

        What seeds share through o of their training rows correlates them by o at most, if each
        row acts on its own, and by o**2 where rows act in pairs (Hoeffding 1948). Arms that
        differ in inputs are near o**2; those that differ in targets, weights or penalties
        approach o as training sets grow. So o counts by half if it is small, and in full above a
        third. Test rows that seeds draw from the same pool add up to half of their share. See the
        simulation in docs/verdict.md. With the whole pool nothing is drawn: the verdict is about
        this training set, for which seeds are independent.
        """
        if self.is_whole_pool(size):
            return 0.0
        shared = self.overlap(size)
        return max(shared * min(1.0, (1 + 3 * shared) / 2), self.test_overlap() / 2)

    def test_overlap(self) -> float:
        """Return the share of test rows that two seeds have in common, if each draws its own."""
        if self.test == "fixed" or self.n_test is None:
            return 0.0
        return min(1.0, self.n_test / self.n_pool)

    def is_whole_pool(self, size: int) -> bool:
        """Whether every seed trains on the same rows."""
        return size >= self.n_pool

    def scope(self, size: int) -> str:
        """Return what a verdict at this size holds for, in words."""
        if self.is_whole_pool(size):
            data = "this training set"
        elif self.time is not None:
            new = "" if self.groups is None else f" of new groups ({self.groups})"
            data = f"later rows{new}, in order of {self.time}"
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
    """The numbers of seeds at which a comparison is judged, and the error that each look spends.

    The first look may spend `first_share` of the allowed error, every later one half of the rest.
    So seeds may be added at any time. What a look did not spend is left to the next ones.
    """

    counts: tuple[Annotated[int, Field(gt=0)], ...]
    """Increasing numbers of seeds."""
    first_share: Annotated[float, Field(gt=0, lt=1)] = 0.8

    @classmethod
    def until_decided(cls, max_seeds: int) -> "Looks":
        """Return looks at 7, 9, 12, 16, ... seeds, up to a budget."""
        counts = [min(7, max_seeds)]
        while counts[-1] < max_seeds:
            counts.append(min(max_seeds, -(-counts[-1] * 4 // 3) if counts[-1] > 7 else 9))
        return cls(tuple(counts), first_share=0.4)

    def after(self, earlier: "Looks | None", n_seen: int) -> "Looks":
        """Return these looks, preceded by those of an earlier plan that took place.

        Args:
            earlier: Looks of the earlier plan, if any.
            n_seen: Largest number of seeds with results under that plan.
        """
        seen = tuple(n for n in (earlier.counts if earlier else ()) if n <= n_seen)
        if earlier is None or not seen:
            return self
        return Looks((*seen, *(n for n in self.counts if n > seen[-1])), earlier.first_share)

    def reached(self, n_seeds: int) -> list[tuple[int, float]]:
        """Return the looks that this many seeds allow, with the error that may be spent until each.

        The error is a share of what is allowed in total. With fewer seeds than the first look has,
        there is a preliminary look.
        """
        left = 1 - self.first_share
        shares = [1 - left / 2**k for k in range(len(self.counts))]
        found = [look for look in zip(self.counts, shares, strict=True) if look[0] <= n_seeds]
        return found or [(n_seeds, self.first_share)]
