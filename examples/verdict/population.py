"""A real table taken as the population, and comparisons on it whose truth is known."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

Floats = NDArray[np.float64]

N_COLUMNS = 12
"""The columns of the table that tell most of the label."""
N_OWN = 6
"""Columns of noise that each arm has for itself."""
RIDGE = 3.0
ARMS = ("plain", "noise", "ours", "theirs")
METHODS, CONTROLS = ARMS[2:], ARMS[:2]


@dataclass(frozen=True, slots=True)
class Population:
    """Rows to draw from: standardised columns, and a label of -1 or 1 for half of them each."""

    x: Floats
    y: Floats

    @classmethod
    def read(cls, path: Path | None) -> "Population":
        """Read a table of numbers whose last column is the label; None: scikit-learn's digits."""
        if path is None:
            digits = load_digits()
            x, label = digits.data.astype(np.float64), digits.target >= 5
        else:
            rows = np.loadtxt(path, delimiter=",")
            x, label = rows[:, :-1], rows[:, -1] > 0
        x = (x - x.mean(0)) / np.where(x.std(0) > 0, x.std(0), 1.0)
        y = np.where(label, 1.0, -1.0)
        rng = np.random.default_rng(0)
        n = int(min(label.sum(), (~label).sum()))
        rows_used = [rng.choice(np.flatnonzero(part), n, replace=False) for part in (label, ~label)]
        chosen = rng.permutation(np.concatenate(rows_used))
        telling = np.argsort(-np.abs(x[chosen].T @ y[chosen]))[:N_COLUMNS]
        return cls(x[chosen][:, telling], y[chosen])


@dataclass(frozen=True, slots=True)
class Setup:
    """How the rows of a comparison are drawn from the population."""

    n_pool: int
    sizes: tuple[int, ...]
    test: Literal["fixed", "per-seed"]
    n_test: int

    @property
    def name(self) -> str:
        """What a reader of the table needs to know."""
        share = f"{self.sizes[-1] / self.n_pool:.0%}"
        test = "one test set" if self.test == "fixed" else "a test set per seed"
        return f"up to {share} of {self.n_pool} rows, {test} of {self.n_test}"


def run_comparison(
    population: Population,
    setup: Setup,
    n_seeds: int,
    rng: np.random.Generator,
    hidden: Sequence[int] = (),
) -> dict[str, list[Any]]:
    """Return the scores of a comparison on a pool of its own, as columns.

    Every arm is the same ridge classifier on the columns of the table and `N_OWN` columns of noise
    that belong to the rows of the pool: by chance they suit one arm better than another, on all
    seeds alike, and in the population no arm is better. With `hidden`, the plain arm lacks these
    columns of the table: then it is worse.
    """
    n_rows = setup.n_pool + (setup.n_test if setup.test == "fixed" else 0)
    rows = rng.choice(len(population.y), n_rows, replace=False)
    x, y = population.x[rows], population.y[rows]
    inputs = {arm: np.c_[x, rng.normal(size=(n_rows, N_OWN))] for arm in ARMS}
    inputs["plain"] = np.delete(inputs["plain"], list(hidden), axis=1)
    columns: dict[str, list[Any]] = {"arm": [], "size": [], "seed": [], "score": []}
    for seed in range(n_seeds):
        order = rng.permutation(setup.n_pool)
        test = np.arange(setup.n_pool, n_rows)
        if setup.test == "per-seed":
            test, order = order[: setup.n_test], order[setup.n_test :]
        for size in setup.sizes:
            train = order[:size]
            for arm, table in inputs.items():
                score = _accuracy(table[train], y[train], table[test], y[test])
                for name, value in zip(columns, (arm, size, seed, score), strict=True):
                    columns[name].append(value)
    return columns


def _accuracy(x: Floats, y: Floats, x_test: Floats, y_test: Floats) -> float:
    weights = np.linalg.solve(x.T @ x + RIDGE * np.eye(x.shape[1]), x.T @ y)
    return float(((x_test @ weights > 0) == (y_test > 0)).mean())
