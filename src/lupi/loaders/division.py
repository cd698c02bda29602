"""How each seed divides rows into training, validation and test rows: one rule for all data.

Parts that a source gives (files, a column, folders) are the same for every seed. The others are
drawn from its training rows: class by class, by whole groups, or in order of time.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lupi.design import Design
from lupi.errors import LupiError
from lupi.facts import Fact
from lupi.settings import derive_seed
from lupi.subsets import PARTS, Part, Subgroups

Rows = NDArray[np.int64]
Codes = NDArray[np.int64]
Amount = float | int
"""A fraction of the rows (float), or a number of rows of each class (int)."""


@dataclass(frozen=True, slots=True)
class Division:
    """The rows of a source, and how they are divided.

    Rows are numbered over all given parts: those of `train` first, then `val`, then `test`.
    """

    labels: Codes
    """Class of each row (N,), or zeros: every class is divided on its own."""
    given: Mapping[Part, Rows]
    """Rows of the parts that the source gives. Parts in `drawn` are taken from `train`."""
    drawn: Mapping[Part, Amount]
    """How many rows each seed draws for the parts that the source does not give."""
    groups: Codes | None = None
    """Group of each row (N,): a group is never divided, whatever the classes of its rows."""
    time: NDArray[np.float64] | None = None
    """Time of each row (N,): training rows precede validation rows, and these test rows."""
    keys: NDArray[np.uint64] | None = None
    """A number made of each row's name (N,). With keys the order of a draw depends on names only:
    a row that is added later replaces at most one other."""
    by: Subgroups | None = None
    trainable: NDArray[np.bool_] | None = None
    """Rows that may be training rows (N,); None: all."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Names of `groups` and `time` in messages and in the design, such as their columns."""

    @property
    def pool(self) -> Rows:
        """Rows that are divided further."""
        return self.given["train"]

    @property
    def n_train(self) -> int:
        """Number of rows that training rows can be chosen from, with any seed."""
        if self.groups is None or self.time is not None:
            return len(self.draw(0)["train"])
        n_held_out = sum(int(self._room(part).sum()) for part in self.drawn)
        may_train = self.pool if self.trainable is None else self.pool[self.trainable[self.pool]]
        return len(may_train) - n_held_out

    @property
    def design(self) -> Design:
        """Design of a comparison: what seeds share."""
        parts, by_time = self.draw(0), self.time is not None
        return Design(
            n_pool=len(parts["train"]) if by_time else len(self.pool),
            test="per-seed" if "test" in self.drawn and not by_time else "fixed",
            n_test=len(parts["test"]),
            groups=self.names.get("groups", "groups") if self.groups is not None else None,
            time=self.names.get("time", "time") if by_time else None,
        )

    @property
    def left_out(self) -> int:
        """Number of rows in no part: later rows of groups that also have earlier ones."""
        if self.groups is None or self.time is None:
            return 0
        parts = self.draw(0)
        return sum(map(len, self.given.values())) - sum(map(len, parts.values()))

    def classes_of(self, rows: Rows, seed: int) -> Codes:
        """Return the class of each row."""
        return self.labels[rows]

    def facts(self) -> list[Fact]:
        """Return what to know about groups, time and subgroups."""
        found = [] if self.by is None else [self.by.fact()]
        if self.groups is not None:
            n_groups, name = len(np.unique(self.groups)), self.names.get("groups", "groups")
            found.append(Fact("groups", f"{n_groups:,} ({name}), none of which is divided"))
        if self.left_out:
            n = f"{self.left_out:,} later rows"
            found.append(Fact("rows", f"{n} of groups with earlier rows are left out"))
        return found

    def draw(self, seed: int) -> dict[Part, Rows]:
        """Return the rows of each part of a seed, ascending."""
        parts = dict(self.given)
        if self.drawn:
            if self.time is not None:
                parts |= self._by_time(self.time)
            elif self.groups is not None:
                parts |= self._by_group(self.groups, seed)
            else:
                parts |= self._by_class(seed)
        if self.trainable is not None:
            parts["train"] = parts["train"][self.trainable[parts["train"]]]
        return {part: np.sort(parts[part]) for part in PARTS}

    def _by_class(self, seed: int) -> dict[Part, Rows]:
        rows: dict[Part, list[Rows]] = {part: [] for part in ("train", *self.drawn)}
        order = self._in_order(self.pool, self.keys, seed)
        rng = np.random.default_rng(derive_seed(seed, "rows"))
        labels = self.labels[order]
        for label in np.unique(labels):
            of_class = order[labels == label]
            if self.keys is None:
                of_class = rng.permutation(of_class)
            n_class = len(of_class)
            for part, amount in self.drawn.items():
                n = round(amount * n_class) if isinstance(amount, float) else amount
                n = min(max(1, n), len(of_class) - 1)
                rows[part].append(of_class[:n])
                of_class = of_class[n:]
            rows["train"].append(of_class)
        return {part: np.concatenate(some) for part, some in rows.items()}

    def _by_group(self, groups: Codes, seed: int) -> dict[Part, Rows]:
        """Fill each part with groups in random order, leaving out those that no longer fit."""
        found, group = np.unique(groups[self.pool], return_inverse=True)
        sizes = {part: self._sizes(group, part) for part in self.drawn}
        if self.keys is None:
            order = np.random.default_rng(derive_seed(seed, "rows")).permutation(len(found))
        else:
            first = np.full(len(found), np.iinfo(np.uint64).max)
            np.minimum.at(first, group, self.keys[self.pool])
            order = self._in_order(np.arange(len(found)), first, seed)
        part_of: list[Part] = ["train"] * len(found)
        left = {part: self._room(part) for part in self.drawn}
        for i in order.tolist():
            for part, room in left.items():
                if (sizes[part][i] <= room).all():
                    part_of[i] = part
                    left[part] = room - sizes[part][i]
                    break
        drawn = np.array(part_of)[group]
        rows = {part: self.pool[drawn == part] for part in ("train", *self.drawn)}
        for part in self.drawn:
            self._check_drawn(part, rows[part], np.bincount(group))
        return rows

    def _check_drawn(self, part: Part, rows: Rows, sizes: NDArray[np.int64]) -> None:
        """Raise an error if no group fits into a part, or none of a class."""
        amount = self.drawn[part]
        if isinstance(amount, float) and not len(rows):
            raise LupiError(
                f"groups: none of the {len(sizes)} groups fits into {amount:.0%} of "
                f"{len(self.pool):,} rows for {part}; the smallest has {sizes.min():,}: increase "
                f"task.{part}_frac, or use files or a split column"
            )
        missing = np.setdiff1d(self.labels[self.pool], self.labels[rows])
        if isinstance(amount, int) and len(missing):
            raise LupiError(
                f"groups: no group fits into {amount} rows of each class for {part}, so that "
                f"{len(missing)} classes have none; groups have up to {sizes.max():,} rows: "
                f"increase task.n_{part}"
            )

    def _by_time(self, time: NDArray[np.float64]) -> dict[Part, Rows]:
        """Cut the rows in order of time; later rows of a group that has earlier ones are left out.

        So test rows are later than training rows, and of new groups.
        """
        parts: dict[Part, Rows] = {}
        rest = self.pool
        for part in ("test", "val"):
            if part in self.drawn:
                in_order = np.sort(time[rest])
                n = max(1, int(self._room(part).sum()))
                start = in_order[max(0, len(rest) - n)]
                parts[part] = rest[time[rest] >= start]  # rows of one time stay together
                rest = rest[time[rest] < start]
        if not len(rest):
            raise LupiError(
                f"time: the {len(np.unique(time))} distinct times of {len(self.pool):,} rows leave "
                "no rows for training before validation and test"
            )
        if self.groups is not None:
            seen = self.groups[rest]
            for part in ("val", "test"):
                if part in parts:
                    kept = parts[part][~np.isin(self.groups[parts[part]], seen)]
                    if not len(kept):
                        raise LupiError(
                            f"time and groups: every group with {part} rows also has earlier rows; "
                            "no later row of a new group is left: use time or groups alone, or "
                            "choose larger groups"
                        )
                    seen = np.concatenate([seen, self.groups[kept]])
                    parts[part] = kept
        return {"train": rest, **parts}

    def _in_order(
        self, rows: Rows, keys: NDArray[np.uint64] | None, seed: int
    ) -> NDArray[np.int64]:
        """Return rows in the order of their keys, another one for each seed; without keys as is."""
        if keys is None:
            return rows
        return rows[np.argsort(_mixed(keys[rows], seed), kind="stable")]

    def _room(self, part: Part) -> NDArray[np.int64]:
        """Return how many rows fit into a part: of each class, or of all together."""
        amount = self.drawn[part]
        if isinstance(amount, float):
            return np.array([round(amount * len(self.pool))])
        return np.full(len(np.unique(self.labels[self.pool])), amount)

    def _sizes(self, group: Codes, part: Part) -> NDArray[np.int64]:
        """Return the number of rows of each group: of each class, or of all together."""
        if isinstance(self.drawn[part], float):
            return np.bincount(group)[:, None]
        classes, label = np.unique(self.labels[self.pool], return_inverse=True)
        sizes = np.zeros((group.max() + 1, len(classes)), dtype=np.int64)
        np.add.at(sizes, (group, label), 1)
        return sizes


@dataclass(frozen=True, slots=True)
class GivenParts:
    """Parts that are the same for every seed, each with row numbers of its own."""

    sizes: Mapping[Part, int]
    classes: Callable[[int], Codes]
    """A seed to the class of each training row."""
    by: Subgroups | None = None

    @property
    def n_train(self) -> int:
        """Number of training rows."""
        return self.sizes["train"]

    @property
    def design(self) -> Design:
        """Design of a comparison: all seeds have the same test rows."""
        return Design(self.n_train, "fixed", self.sizes["test"])

    def classes_of(self, rows: Rows, seed: int) -> Codes:
        """Return the class of each row."""
        return self.classes(seed)[rows]

    def draw(self, seed: int) -> dict[Part, Rows]:
        """Return all rows of each part."""
        return {part: np.arange(self.sizes[part]) for part in PARTS}

    def facts(self) -> list[Fact]:
        """Return nothing to know."""
        return []


def given_parts(sizes: Mapping[Part, int]) -> dict[Part, Rows]:
    """Number the rows of the given parts: training rows first, then validation, then test."""
    starts = dict(zip(PARTS, np.cumsum([0, *(sizes.get(part, 0) for part in PARTS)]), strict=False))
    return {part: int(starts[part]) + np.arange(sizes[part]) for part in PARTS if part in sizes}


def number_groups(names: Mapping[Part, Sequence[str | None]], what: str) -> Codes:
    """Return the group of each row; raise an error for a group in two given parts."""
    for part, of_part in names.items():
        if None in of_part:
            row = list(of_part).index(None) + 1
            raise LupiError(f"groups: {what} is empty in row {row} of {part}")
    check_groups(names)
    every = [name for part in PARTS for name in names.get(part, ())]
    number = {name: i for i, name in enumerate(dict.fromkeys(every))}
    return np.array([number[name] for name in every], dtype=np.int64)


def check_groups(names: Mapping[Part, Iterable[Any]]) -> None:
    """Raise an error for a group in two given parts."""
    seen: dict[Any, Part] = {}
    for part, of_part in names.items():
        for name in dict.fromkeys(of_part):
            if seen.setdefault(name, part) != part:
                raise LupiError(
                    f"groups: {name!r} has rows in {seen[name]} and in {part}; a group must not "
                    "be divided"
                )


def order_times(times: Mapping[Part, NDArray[np.float64]], what: str) -> NDArray[np.float64]:
    """Return the time of each row; raise an error if given parts are not in order."""
    order = [part for part in PARTS if part in times]
    for earlier, later in pairwise(order):
        if times[earlier].max() >= times[later].min():
            raise LupiError(
                f"time: some {later} rows are not later than all {earlier} rows by {what}"
            )
    return np.concatenate([times[part] for part in order])


def check_classes(labels: Codes, names: Sequence[str], target: str, n_parts: int) -> None:
    """Refuse a class that can't have a row in each of `n_parts` parts."""
    counts = np.bincount(labels, minlength=len(names))
    for name, count in zip(names, counts, strict=True):
        if count < n_parts:
            raise LupiError(
                f"class {name!r} of {target!r} has {count} row(s); {n_parts} are needed for "
                "training, validation and test: merge it with another class, or drop its rows"
            )


def _mixed(keys: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """Return a random number for each key, another one for each seed (SplitMix64)."""
    mixed = keys ^ np.uint64(derive_seed(seed, "rows"))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))
