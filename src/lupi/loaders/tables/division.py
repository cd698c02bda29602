"""The split of a table into training, validation and test rows, drawn by each seed.

Rows are drawn by class or by group, or split in order of time, which is the same for every seed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lupi.core import derive_seed
from lupi.errors import LupiError

Part = Literal["train", "val", "test"]
Rows = NDArray[np.int64]
Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Division:
    """How rows are split into training rows and the parts with a fraction."""

    n_rows: int
    fracs: Mapping[Part, float]
    """Of validation and test rows, where they are drawn; empty: all rows are for training."""
    labels: Codes
    """Class of each row (N,), or zeros: every class is divided on its own."""
    groups: Codes | None = None
    """Rows of one group stay together, whatever their classes."""
    time: NDArray[np.float64] | None = None
    """Training rows come before validation rows, and these before test rows."""

    @property
    def n_train(self) -> int:
        """How many rows there are to choose training rows from, with any seed."""
        if self.groups is not None:
            return self.n_rows - sum(self._most(part) for part in self.fracs)
        return len(self.draw(0)["train"])

    def draw(self, seed: int) -> dict[Part, Rows]:
        """Return the rows of each part, in their order in the table."""
        if not self.fracs:
            return {"train": np.arange(self.n_rows)}
        if self.time is not None:
            parts = self._by_time(self.time)
        else:
            rng = np.random.default_rng(derive_seed(seed, "rows"))
            parts = self._by_class(rng) if self.groups is None else self._by_group(rng, self.groups)
        return {part: np.sort(rows) for part, rows in parts.items()}

    def _by_class(self, rng: np.random.Generator) -> dict[Part, Rows]:
        rows: dict[Part, list[Rows]] = {part: [] for part in ("train", *self.fracs)}
        for label in np.unique(self.labels):
            order = rng.permutation(np.flatnonzero(self.labels == label))
            n_class = len(order)
            for part, frac in self.fracs.items():
                n = min(max(1, round(frac * n_class)), len(order) - 1)
                rows[part].append(order[:n])
                order = order[n:]
            rows["train"].append(order)
        return {part: np.concatenate(some) for part, some in rows.items()}

    def _by_group(self, rng: np.random.Generator, groups: Codes) -> dict[Part, Rows]:
        """Fill each part with groups in random order, leaving out those that no longer fit."""
        sizes = np.bincount(groups)
        part_of: list[Part] = ["train"] * len(sizes)
        left = {part: self._most(part) for part in self.fracs}
        for group in rng.permutation(len(sizes)).tolist():
            for part, room in left.items():
                if sizes[group] <= room:
                    part_of[group] = part
                    left[part] -= int(sizes[group])
                    break
        drawn = np.array(part_of)[groups]
        for part, frac in self.fracs.items():
            if not (drawn == part).any():
                raise LupiError(
                    f"groups: none of the {len(sizes)} groups fits into {frac:.0%} of "
                    f"{self.n_rows:,} rows for {part}; the smallest has {sizes.min():,}: increase "
                    f"task.{part}_frac, or use files or a split column"
                )
        return {part: np.flatnonzero(drawn == part) for part in ("train", *self.fracs)}

    def _by_time(self, time: NDArray[np.float64]) -> dict[Part, Rows]:
        parts: dict[Part, Rows] = {}
        rest = np.arange(self.n_rows)
        for part in ("test", "val"):
            if part in self.fracs:
                in_order = np.sort(time[rest])
                start = in_order[max(0, len(rest) - max(1, self._most(part)))]
                parts[part] = rest[time[rest] >= start]  # rows of one time stay together
                rest = rest[time[rest] < start]
        if not len(rest):
            raise LupiError(
                f"time: the {len(np.unique(time))} distinct times of {self.n_rows:,} rows leave "
                "no rows for training before validation and test"
            )
        return {"train": rest, **parts}

    def _most(self, part: Part) -> int:
        return round(self.fracs[part] * self.n_rows)


def check_classes(labels: Codes, names: tuple[str, ...], target: str, n_parts: int) -> None:
    """Refuse a class that can't have a row in each of `n_parts` parts."""
    counts = np.bincount(labels, minlength=len(names))
    for name, count in zip(names, counts, strict=True):
        if count < n_parts:
            raise LupiError(
                f"class {name!r} of {target!r} has {count} row(s); {n_parts} are needed for "
                "training, validation and test: merge it with another class, or drop its rows"
            )
