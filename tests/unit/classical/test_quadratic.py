import numpy as np
import pytest

from lupi.classical.quadratic import solve
from lupi.errors import LupiError


def test_a_program_solved_by_hand() -> None:
    """Nearest point to (3, 1, -1) whose sum is 2, in [0, 1] x [0, inf) x [0, inf)."""
    upper = np.array([1.0, np.inf, np.inf])
    point = solve(np.eye(3), np.array([3.0, 1.0, -1.0]), np.ones((1, 3)), np.array([2.0]), upper)
    assert point.z == pytest.approx([1.0, 1.0, 0.0], abs=1e-6)
    assert point.nu == pytest.approx([0.0], abs=1e-6)
    assert point.w == pytest.approx([2.0, 0.0, 0.0], abs=1e-6)
    assert point.s == pytest.approx([0.0, 0.0, 1.0], abs=1e-6)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("rank", [3, 30])
def test_conditions_of_optimality(seed: int, rank: int) -> None:
    rng = np.random.default_rng(seed)
    n = 30
    root = rng.normal(size=(n, rank))
    H, p = root @ root.T, rng.normal(size=n)
    upper = np.where(np.arange(n) % 2 == 0, 1.0, np.inf)
    A = np.vstack([rng.normal(size=n), np.ones(n)])
    b = A @ np.full(n, 0.5)
    z, nu, s, w = solve(H, p, A, b, upper)
    assert np.abs(H @ z - p - A.T @ nu - s + w).max() < 1e-6
    assert np.abs(A @ z - b).max() < 1e-6
    assert min(z.min(), s.min(), w.min(), (upper - z).min()) >= 0
    assert z @ s < 1e-6
    assert w[0::2] @ (1 - z[0::2]) < 1e-6
    assert (w[1::2] == 0).all()


def test_gives_up_with_advice() -> None:
    with pytest.raises(LupiError, match="not solved in 2 steps; scale the features"):
        solve(np.eye(2), np.ones(2), np.ones((1, 2)), np.ones(1), np.full(2, np.inf), max_iter=2)
