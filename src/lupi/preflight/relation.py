"""A permutation test of whether features relate to a target, which takes a second.

The statistic is the leave-one-out R2 of a ridge regression, whose strength depends on the features
only: with H = X (X'X + s I)^-1 X', row i is predicted by the others with an error of
(y - H y)_i / (1 - H_ii). Without a relation, every order of the targets is equally likely, so the
R2 of shuffled targets shows how large it gets by chance.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

ALPHA = 0.05
N_SHUFFLES = 399
MAX_PARAMETERS = 30
"""Maximum number of effective parameters of the regression."""
ROWS_PER_PARAMETER = 5
"""Minimum number of rows per effective parameter."""


class Relation(NamedTuple):
    """How well features predict a target, with a p-value."""

    r2: float
    """Leave-one-out R2; below 0 if they predict worse than the mean."""
    p_value: float

    @property
    def is_seen(self) -> bool:
        """Whether the relation is significant (5 %)."""
        return self.p_value <= ALPHA


class Ridge:
    """Ridge regression on some features (N, F), predicting each row from the others."""

    def __init__(self, features: Floats) -> None:
        n = len(features)
        x = features - features.mean(0)
        scale = x.std(0)
        x = x[:, scale > 0] / scale[scale > 0]
        u, squares = _left_vectors(x)
        n_parameters = min(MAX_PARAMETERS, n / ROWS_PER_PARAMETER)
        shrink = squares / (squares + _strength(squares, n_parameters))
        self._u, self._shrink = u, shrink
        self._left = 1 - (u**2 * shrink).sum(1) - 1 / n  # the mean is one parameter more

    def errors(self, targets: Floats) -> Floats:
        """Return the error at each row when it is left out; targets (N, K)."""
        y = targets - targets.mean(0)
        fitted = self._u @ (self._shrink[:, None] * (self._u.T @ y))
        errors: Floats = (y - fitted) / self._left[:, None]
        return errors

    def r2(self, targets: Floats) -> float:
        """Return the fraction of the targets' variance that is predicted."""
        return 1 - float((self.errors(targets) ** 2).sum() / _variation(targets))


def _left_vectors(x: Floats) -> tuple[Floats, Floats]:
    """Return left singular vectors (N, K) of x, and the squares of its singular values (K,).

    From the products of rows or of columns, whichever are fewer: much faster than an SVD.
    """
    n_rows, n_columns = x.shape
    squares, vectors = np.linalg.eigh(x @ x.T if n_rows <= n_columns else x.T @ x)
    kept = squares > 1e-10 * squares.max(initial=0.0)
    squares, vectors = squares[kept], vectors[:, kept]
    return (vectors if n_rows <= n_columns else x @ vectors / np.sqrt(squares)), squares


def relation(features: Floats, targets: Floats, rng: np.random.Generator) -> Relation:
    """Test whether features (N, F) relate to targets (N, K)."""
    ridge = Ridge(features)
    found = ridge.r2(targets)
    by_chance = [ridge.r2(targets[rng.permutation(len(targets))]) for _ in range(N_SHUFFLES)]
    return Relation(found, _p_value(found, by_chance))


def compare_features(real: Floats, others: list[Floats], targets: Floats) -> Relation:
    """Test whether features predict targets better than random ones do."""
    found = Ridge(real).r2(targets)
    return Relation(found, _p_value(found, [Ridge(other).r2(targets) for other in others]))


def sign_test(wins: int, losses: int) -> float:
    """Return the probability of so many wins or more, if each is as likely as a loss."""
    n = wins + losses
    return float(sum(math.comb(n, k) for k in range(wins, n + 1)) / 2**n)


def _p_value(found: float, by_chance: list[float]) -> float:
    return (1 + sum(value >= found for value in by_chance)) / (1 + len(by_chance))


def _variation(targets: Floats) -> float:
    # The mean without the row itself is n / (n - 1) times as far away.
    n = len(targets)
    return float(((targets - targets.mean(0)) ** 2).sum()) * (n / (n - 1)) ** 2


def _strength(squares: Floats, freedom: float) -> float:
    """Return the smallest ridge with at most this many effective parameters."""
    if not len(squares) or (squares > 0).sum() <= freedom:
        return 1e-6 * float(squares.max(initial=1.0))
    low, high = 0.0, float(squares.max()) * len(squares)
    for _ in range(60):
        middle = (low + high) / 2
        enough = (squares / (squares + middle)).sum() <= freedom
        low, high = (low, middle) if enough else (middle, high)
    return high
