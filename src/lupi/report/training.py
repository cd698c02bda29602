"""Curves over epochs, averaged over runs, from the rows of metrics.jsonl."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Curve:
    """The mean of one number over runs, per epoch."""

    epochs: list[int]
    means: list[float]
    n_runs: int
    """Number of runs with the number at any epoch."""

    @property
    def moves(self) -> bool:
        """Whether the number changes from one epoch to another."""
        return min(self.means) < max(self.means)


def number_at(row: Row, *keys: str) -> float | None:
    """Follow keys into a row; None if there is no finite number."""
    value: Any = row
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def mean_curve(runs: Sequence[Sequence[Row]], *keys: str) -> Curve | None:
    """Average the number under `keys` over the runs that reached each epoch."""
    values: dict[int, list[float]] = {}
    n_runs = 0
    for rows in runs:
        found = False
        for row in rows:
            number, epoch = number_at(row, *keys), number_at(row, "epoch")
            if number is not None and epoch is not None:
                values.setdefault(int(epoch), []).append(number)
                found = True
        n_runs += found
    if not values:
        return None
    epochs = sorted(values)
    # Five digits are more than a screen shows, and keep the page small.
    means = [float(f"{sum(values[e]) / len(values[e]):.5g}") for e in epochs]
    return Curve(epochs, means, n_runs)


def sites_with_variance(runs: Sequence[Sequence[Row]]) -> list[str]:
    """Return the noise sites with a logged variance inside and outside the region, in order."""
    sites: dict[str, None] = {}
    for rows in runs:
        for row in rows:
            logged = row.get("sites")
            for site in logged if isinstance(logged, dict) else ():
                if number_at(row, "sites", site, "variance_inside") is not None:
                    sites[site] = None
    return list(sites)
