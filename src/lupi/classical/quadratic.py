"""A quadratic program, solved by an interior-point method.

    minimise z'Hz / 2 - p'z   such that   Az = b,   0 <= z <= upper

Mehrotra's predictor-corrector (SIAM J. Optimization 2, 1992): Newton steps on the conditions of
optimality, each with one Cholesky factorisation, so for a few thousand variables at most.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from lupi.errors import LupiError

Array = NDArray[np.float64]


class Point(NamedTuple):
    """Variables, and multipliers of the constraints."""

    z: Array
    nu: Array
    """Of Az = b: at the optimum, Hz - p - A'nu - s + w = 0."""
    s: Array
    """Of z >= 0."""
    w: Array
    """Of z <= upper; 0 where there is no bound."""


def solve(
    H: Array, p: Array, A: Array, b: Array, upper: Array, tol: float = 1e-8, max_iter: int = 200
) -> Point:
    """Return the optimum.

    Args:
        H: positive semi-definite, (N, N).
        p: (N,).
        A: full row rank, (M, N).
        b: (M,).
        upper: (N,), infinite where there is no bound.
        tol: tolerance of the optimality conditions, relative to the size of p and b.
        max_iter: maximum number of steps.
    """
    has_upper = np.isfinite(upper)
    n_bounds = len(p) + has_upper.sum()
    start = max(1.0, float(np.abs(p).max()))
    z = np.where(has_upper, upper / 2, start)
    point = Point(z, np.zeros(len(b)), np.full_like(z, start), np.where(has_upper, start, 0.0))
    for _ in range(max_iter):
        z, nu, s, w = point
        room = np.where(has_upper, upper - z, 1.0)
        dual_gap = H @ z - p - A.T @ nu - s + w
        primal_gap = A @ z - b
        mu = (z @ s + room @ w) / n_bounds
        if (
            np.abs(dual_gap).max() <= tol * (1 + np.abs(p).max())
            and np.abs(primal_gap).max() <= tol * (1 + np.abs(b).max())
            and mu * n_bounds <= tol**1.25 * (1 + abs(p @ z))  # errors of z are its root
        ):
            return point
        M = H + np.diag(s / z + w / room)
        M[np.diag_indices_from(M)] *= 1 + 1e-12
        newton = _Newton(cho_factor(M, lower=True, check_finite=False), A, dual_gap, primal_gap)

        guess = newton.step(point, room, z * s, room * w)
        length = _longest(point, room, guess)
        z_, _, s_, w_ = (now + length * step for now, step in zip(point, guess, strict=True))
        expected = (z_ @ s_ + (room - length * guess.z) @ w_) / n_bounds
        target = mu * (expected / mu) ** 3

        # The same factorisation again, aiming at the middle and with the guess's own error.
        step = newton.step(
            point,
            room,
            z * s + guess.z * guess.s - target,
            np.where(has_upper, room * w - guess.z * guess.w - target, 0.0),
        )
        length = 0.995 * _longest(point, room, step)
        point = Point(*(now + length * by for now, by in zip(point, step, strict=True)))
    raise LupiError(
        f"the quadratic program was not solved in {max_iter} steps; scale the features, or "
        "choose a smaller C"
    )


class _Newton:
    """The linear system of one iteration, factorised."""

    def __init__(self, factor: Any, A: Array, dual_gap: Array, primal_gap: Array) -> None:
        self.factor, self.A = factor, A
        self.dual_gap, self.primal_gap = dual_gap, primal_gap
        self.solved_A = cho_solve(factor, A.T, check_finite=False)  # (N, M)

    def step(self, point: Point, room: Array, zs: Array, tw: Array) -> Point:
        """Return the step that would take z * s and room * w down by `zs` and `tw`."""
        right = -self.dual_gap - zs / point.z + tw / room
        solved = cho_solve(self.factor, right, check_finite=False)
        nu = np.linalg.solve(self.A @ self.solved_A, -self.primal_gap - self.A @ solved)
        z = solved + self.solved_A @ nu
        return Point(z, nu, (-zs - point.s * z) / point.z, (-tw + point.w * z) / room)


def _longest(point: Point, room: Array, step: Point) -> float:
    """Return the longest step, at most 1, that keeps the constrained variables positive."""
    now = np.concatenate([point.z, point.s, room, point.w])
    by = np.concatenate([step.z, step.s, -step.z, step.w])
    falls = (by < 0) & (now > 0)
    falls[2 * len(room) : 3 * len(room)] &= point.w > 0  # there is room only where there is a bound
    return min(1.0, float(np.min(-now[falls] / by[falls], initial=1.0)))
