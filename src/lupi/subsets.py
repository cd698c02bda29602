"""Parts of the rows, and nested subsets: small training sets are subsets of larger ones."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from lupi.errors import LupiError
from lupi.facts import Fact, list_counts
from lupi.settings import derive_seed

Part = Literal["train", "val", "test"]
PARTS: tuple[Part, ...] = get_args(Part)


def nested_rows(
    labels: NDArray[np.int64], size: int, seed: int, balanced: bool = True
) -> NDArray[np.int64]:
    """Return `size` rows, nested for each seed, balanced over classes or with their frequencies.

    Each class is shuffled, and the classes are dealt in turns: the first `size` rows dealt. If
    not `balanced`, a class has its turn the more often the more rows it has.
    """
    if not 0 < size <= len(labels):
        raise LupiError(f"a training set of {size} rows was asked for; there are {len(labels)}")
    rng = np.random.default_rng(derive_seed(seed, "subset"))
    shuffled = rng.permutation(len(labels))
    turn = np.empty(len(labels))
    for label in np.unique(labels):
        of_class = shuffled[labels[shuffled] == label]
        turn[of_class] = np.arange(len(of_class)) + 0.5
        if not balanced:
            turn[of_class] /= len(of_class)
    return shuffled[np.argsort(turn[shuffled], kind="stable")][:size]


def rows_with_xstar(n_rows: int, frac: float, seed: int) -> NDArray[np.bool_]:
    """Return which rows keep their x*: a fraction, at least one if not zero, nested in `frac`."""
    if not 0.0 <= frac <= 1.0:
        raise LupiError(f"the fraction of rows with x* must lie in [0, 1], got {frac}")
    order = np.random.default_rng(derive_seed(seed, "xstar-rows")).permutation(n_rows)
    n_keep = int(np.ceil(frac * n_rows))
    has = np.zeros(n_rows, dtype=np.bool_)
    has[order[:n_keep]] = True
    return has


def some_rows(n_rows: int, n: int) -> NDArray[np.int64]:
    """Return n of the rows in their order, drawn at random and always the same."""
    rng = np.random.default_rng(derive_seed(0, "some rows"))
    return np.sort(rng.choice(n_rows, n, replace=False, shuffle=False))


@dataclass(frozen=True, slots=True)
class Subgroups:
    """The subgroup of each row, by which results are shown, too; it has no effect on training."""

    column: str
    names: tuple[str, ...]
    codes: NDArray[np.int64]
    """Place of each row's subgroup in `names` (N,)."""

    def of(self, rows: NDArray[np.int64]) -> dict[str, NDArray[np.bool_]]:
        """Return which of some rows are in each subgroup that has any of them."""
        codes = self.codes[rows]
        return {name: codes == i for i, name in enumerate(self.names) if (codes == i).any()}

    def fact(self) -> Fact:
        """Return how many rows each subgroup has."""
        counts = np.bincount(self.codes, minlength=len(self.names)).tolist()
        named = dict(zip(self.names, counts, strict=True))
        return Fact("subgroups", f"{self.column}: {list_counts(named)}")
