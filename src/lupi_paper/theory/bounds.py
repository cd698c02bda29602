"""Bounds on the generalisation gap |expected loss - mean training loss|, as curves over n.

    Proposition 1   lipschitz * epsilon + L * sqrt((2 K log 2 + 2 log(1/delta)) / n)
    Proposition 2   2 C ((xi + 1) log(1/delta) + M_w (3 xi + M_z) log(P/delta)) / (3 n)
                    + (2 C + 1) epsilon_y,   for xi <= delta
    Bernstein       sqrt(2 s^2 log(2/delta) / n) + 2 L log(2/delta) / (3 n)

Propositions 1 and 2 are those of Lambert, Sener, Savarese, CVPR 2018, as printed: see
docs/theory.md for what is proved and what is not. Bernstein's inequality holds without further
assumption for a network that does not depend on the n rows. Losses are in units of the loss, logs
are natural, and each bound holds with probability at least 1 - delta. Everything is computed in
logs: K, P and M_w of a real network are beyond floating point.
"""

import math
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from lupi.errors import LupiError

Floats = NDArray[np.float64]
N_PLACES = 20_001
"""Number of points at which two curves are compared before a crossing is refined."""
FARTHEST = 30.0
"""How far beyond the last bend curves are compared, in log n."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A sum of powers of n: sum over terms of factor * n ** -power."""

    terms: tuple[tuple[float, float], ...]
    """Pairs of power and log factor; a factor of zero has the log -inf."""

    def log_at(self, n: ArrayLike) -> Floats:
        """Return the natural log of the bound for training sets of n rows, n >= 1."""
        sizes = np.asarray(n, dtype=np.float64)
        if not (sizes >= 1).all():
            raise LupiError(f"n counts training rows: got {sizes.min():g}, expected 1 or more")
        return self._log_at_log(np.log(sizes))

    def at(self, n: ArrayLike) -> Floats:
        """Return the bound, or inf if it exceeds floating point."""
        with np.errstate(over="ignore"):
            return np.exp(self.log_at(n))

    def _log_at_log(self, log_n: Floats) -> Floats:
        logs = [log_factor - power * log_n for power, log_factor in self.terms]
        return np.asarray(np.logaddexp.reduce(logs, axis=0), dtype=np.float64)


def proposition_1(
    *, max_loss: float, log_cover: float, lipschitz: float, epsilon: float, delta: float
) -> Bound:
    """Return the bound without x*, of order sqrt(1/n) down to a floor.

    Args:
        max_loss: L > 0, the largest loss.
        log_cover: log K >= 0; K cells of diameter epsilon cover the pairs (x, y).
        lipschitz: >= 0, Lipschitz constant of the loss in x.
        epsilon: >= 0, diameter of a cell, in the same distance.
        delta: in (0, 1), the probability that the bound fails.
    """
    _check("max_loss", max_loss, max_loss > 0, "above 0")
    _check("log_cover", log_cover, log_cover >= 0, "0 or more")
    _check("lipschitz", lipschitz, lipschitz >= 0, "0 or more")
    _check("epsilon", epsilon, epsilon >= 0, "0 or more")
    _check("delta", delta, 0 < delta < 1, "above 0 and below 1")
    log_cells = math.log(2 * math.log(2)) + log_cover
    log_sure = _log(2 * math.log(1 / delta))
    log_slow = math.log(max_loss) + 0.5 * float(np.logaddexp(log_cells, log_sure))
    return Bound(((0.0, _log(lipschitz * epsilon)), (0.5, log_slow)))


def proposition_2(
    *,
    n_outputs: int,
    log_paths: float,
    log_path_norm: float,
    xi: float,
    max_output: float,
    epsilon_y: float,
    delta: float,
) -> Bound:
    """Return the bound of an oracle that controls the output's variance, of order 1/n.

    Args:
        n_outputs: C >= 1, classes.
        log_paths: log P >= 0, P paths from input to output: see `log_path_count`.
        log_path_norm: log M_w, M_w the squared norm of the path weights: see `log_path_norm`.
        xi: >= 0 and at most delta, standard deviation of the output, in units of the output.
        max_output: M_z > 0, the largest output.
        epsilon_y: >= 0, deviation of the sampled labels from their distribution.
        delta: in (0, 1), the probability that the bound fails.
    """
    _check("n_outputs", n_outputs, n_outputs >= 1, "1 or more")
    _check("log_paths", log_paths, log_paths >= 0, "0 or more")
    if math.isnan(log_path_norm) or log_path_norm == math.inf:
        raise LupiError(f"log_path_norm: got {log_path_norm}, expected the log of a finite norm")
    _check("xi", xi, xi >= 0, "0 or more")
    _check("max_output", max_output, max_output > 0, "above 0")
    _check("epsilon_y", epsilon_y, epsilon_y >= 0, "0 or more")
    _check("delta", delta, 0 < delta < 1, "above 0 and below 1")
    if xi > delta:
        raise LupiError(
            f"xi: got {xi:g} with delta {delta:g}; Proposition 2 is stated for xi <= delta only. "
            "For other variances, use `bernstein`"
        )
    log_sure = _log((xi + 1) * math.log(1 / delta))
    log_matrix = log_path_norm + _log((3 * xi + max_output) * (log_paths - math.log(delta)))
    log_fast = math.log(2 * n_outputs / 3) + float(np.logaddexp(log_sure, log_matrix))
    return Bound(((0.0, _log((2 * n_outputs + 1) * epsilon_y)), (1.0, log_fast)))


def bernstein(*, loss_std: float, max_loss: float, delta: float) -> Bound:
    """Return Bernstein's bound for one fixed network: 1/n at first, sqrt(1/n) in the end.

    Args:
        loss_std: s >= 0, standard deviation of the loss over rows.
        max_loss: L > 0, the largest distance of a loss from its mean.
        delta: in (0, 1), the probability that the bound fails.
    """
    _check("loss_std", loss_std, loss_std >= 0, "0 or more")
    _check("max_loss", max_loss, max_loss > 0, "above 0")
    _check("delta", delta, 0 < delta < 1, "above 0 and below 1")
    sure = math.log(2 / delta)
    slow, fast = loss_std * math.sqrt(2 * sure), 2 * max_loss * sure / 3
    return Bound(((0.5, _log(slow)), (1.0, _log(fast))))


def where_below(bound: Bound, other: Bound) -> list[tuple[float, float | None]]:
    """Return the intervals of log n, n >= 1, in which `bound` is below `other`.

    An end of None means infinity.
    """

    def difference(log_n: ArrayLike) -> Floats:
        at = np.asarray(log_n, dtype=np.float64)
        return np.subtract(bound._log_at_log(at), other._log_at_log(at))

    places = np.linspace(0.0, _last_bend(bound, other) + FARTHEST, N_PLACES)
    below = difference(places) < 0
    turns = np.flatnonzero(below[1:] != below[:-1])
    ends = [float(brentq(difference, places[i], places[i + 1])) for i in turns]
    begins = ([0.0] if below[0] else []) + ends[int(below[0]) :: 2]
    stops: list[float | None] = [*ends[1 - int(below[0]) :: 2]]
    return list(zip_longest(begins, stops))


def _last_bend(*bounds: Bound) -> float:
    """Return the largest log n at which two terms are equal, 0 if there is none."""
    terms = [term for bound in bounds for term in bound.terms if term[1] > -math.inf]
    meetings = [
        (log_a - log_b) / (power_a - power_b)
        for power_a, log_a in terms
        for power_b, log_b in terms
        if power_a > power_b
    ]
    return max([0.0, *meetings])


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf


def _check(name: str, value: float, fits: bool, domain: str) -> None:
    """Raise an error if a constant is outside its domain."""
    if not (fits and math.isfinite(value)):
        raise LupiError(f"{name}: got {value}, expected a finite number {domain}")
