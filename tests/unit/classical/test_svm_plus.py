"""SVM+: its dual's optimality conditions, and what theory says it becomes in the limits."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from lupi.classical.svm_plus import SVMPlus, solve_dual
from lupi.errors import LupiError

Array = NDArray[np.float64]
FREE: dict[str, Any] = {"xstar_gamma": 1e6, "xstar_weight": 1e-4}
"""Rows of x* share nothing, and their slacks cost nothing: a slack of its own for each row."""


@parametrize_with_checks([SVMPlus()])  # type: ignore[untyped-decorator]
def test_is_an_estimator(estimator: Any, check: Any) -> None:
    check(estimator)


def made(n: int = 60, noise: float = 0.5) -> tuple[Array, Array, Array]:
    """Two overlapping classes; x* has the distance from the border, and a distraction."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    margin = X[:, 0] + X[:, 1] ** 2 - 1
    y = np.where(margin + noise * rng.normal(size=n) > 0, 1.0, -1.0)
    return X, y, np.stack([margin * y, rng.normal(size=n)], 1)


@pytest.mark.parametrize("with_xstar", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("price", [0.1, 10.0])
def test_conditions_of_optimality(with_xstar: float, price: float) -> None:
    X, y, XS = made()
    C = price * np.linspace(0.5, 1.5, len(y))
    has = np.arange(len(y)) < with_xstar * len(y)
    K, P = rbf_kernel(X, gamma=0.3), rbf_kernel(XS, gamma=0.3)[np.ix_(has, has)] / 0.5
    machine = solve_dual(K, P, y, has, C)
    alpha, margin = machine.alpha_y * y, y * (K @ machine.alpha_y + machine.intercept)
    beta = machine.d - alpha[has] + C[has]
    slack = np.maximum(0, 1 - margin)  # of rows without x*, the least that will do
    slack[has] = P @ machine.d + machine.xstar_intercept
    small = 1e-5 * max(1, price)
    # Feasible, in the primal and in the dual …
    assert (margin >= 1 - slack - small).all()
    assert slack.min() > -small
    assert alpha.min() > -small
    assert beta.min(initial=0) > -small
    assert (alpha[~has] <= C[~has] + small).all()
    assert abs(alpha @ y) < small
    assert abs(machine.d.sum()) < small
    # … and equal: nothing is left of the duality gap.
    primal = machine.alpha_y @ K @ machine.alpha_y / 2 + machine.d @ P @ machine.d / 2 + C @ slack
    dual = alpha.sum() - machine.alpha_y @ K @ machine.alpha_y / 2 - machine.d @ P @ machine.d / 2
    assert primal == pytest.approx(dual, rel=1e-5)
    assert np.abs(alpha[has] * (margin - 1 + slack)[has]).max(initial=0) < small
    assert np.abs(beta * slack[has]).max(initial=0) < small


def test_the_primal_solved_by_another_hand() -> None:
    X, y, XS = made(25)
    C, weight = 2.0, 0.5
    one = np.ones((len(X), 1))
    slack = np.hstack([0 * X, 0 * one, XS, one])  # of v = (w, b, w*, b*)
    margin = np.hstack([y[:, None] * X, y[:, None], XS, one])
    square = np.array([1, 1, 1, 0, weight, weight, 0])
    found = minimize(
        lambda v: v @ (square * v) / 2 + C * (slack @ v).sum(),
        np.array([0, 0, 0, 0, 0, 0, 2.0]),
        jac=lambda v: square * v + C * slack.sum(0),
        method="SLSQP",
        constraints=[
            {"type": "ineq", "fun": lambda v: margin @ v - 1, "jac": lambda v: margin},
            {"type": "ineq", "fun": lambda v: slack @ v, "jac": lambda v: slack},
        ],
        options={"maxiter": 500, "ftol": 1e-8},
    )
    assert found.success
    svm = SVMPlus(C, "linear", xstar_kernel="linear", xstar_weight=weight).fit(X, y, xstar=XS)
    expected = X @ found.x[:3] + found.x[3]
    assert svm.decision_function(X) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_without_xstar_it_is_a_plain_svm(kernel: str) -> None:
    X, y, _ = made()
    svc = SVC(C=2.0, kernel=kernel, tol=1e-8).fit(X, y)
    svm = SVMPlus(2.0, kernel).fit(X, y)  # type: ignore[arg-type]
    assert svm.decision_function(X) == pytest.approx(svc.decision_function(X), abs=1e-4)
    assert svm.support_.tolist() == sorted(svc.support_)


def test_free_slacks_make_a_plain_svm() -> None:
    X, y, XS = made()
    svc = SVC(C=2.0, tol=1e-8).fit(X, y)
    svm = SVMPlus(2.0, **FREE).fit(X, y, xstar=XS)
    assert svm.decision_function(X) == pytest.approx(svc.decision_function(X), abs=2e-3)
    assert (
        np.abs(
            SVMPlus(2.0).fit(X, y, xstar=XS).decision_function(X) - svc.decision_function(X)
        ).max()
        > 0.1
    )


def test_constant_xstar_gives_every_row_the_same_slack() -> None:
    """So no row may be on the wrong side at a price: where rows can be separated, they are."""
    X, y, XS = made(noise=0.0)
    hard = SVC(C=1e6, gamma=0.5, tol=1e-8).fit(X, y)
    constant = SVMPlus(1e3, gamma=0.5).fit(X, y, xstar=np.ones_like(XS))
    assert constant.decision_function(X) == pytest.approx(
        hard.decision_function(X), rel=1e-2, abs=1e-2
    )
    dear = SVMPlus(1e3, gamma=0.5, xstar_weight=1e9).fit(X, y, xstar=XS)
    assert dear.decision_function(X) == pytest.approx(
        constant.decision_function(X), rel=1e-2, abs=1e-2
    )


def test_rows_without_xstar_are_rows_of_a_plain_svm() -> None:
    X, y, XS = made()
    nothing = SVMPlus().fit(X, y, xstar=np.full_like(XS, np.nan))
    assert nothing.decision_function(X) == pytest.approx(SVMPlus().fit(X, y).decision_function(X))
    half = np.where(np.arange(len(y))[:, None] % 2, XS, np.nan)
    some = SVMPlus().fit(X, y, xstar=half).decision_function(X)
    assert np.abs(some - nothing.decision_function(X)).max() > 1e-3


def test_xstar_that_tells_the_slack_helps_and_another_rows_does_not() -> None:
    scores = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, noise = rng.normal(size=(560, 10)), rng.normal(size=560)
        truth = X[:, 0] + X[:, 1]
        y = np.sign(truth + noise)
        fits = (y * truth)[:60]
        svm = SVMPlus(0.3, "linear", xstar_kernel="linear")
        arms = (fits, rng.permutation(fits), None)
        scores.append([svm.fit(X[:60], y[:60], xstar=a).score(X[60:], y[60:]) for a in arms])
    real, shuffled, plain = np.mean(scores, axis=0)
    assert real > plain + 0.02
    assert real > shuffled + 0.02


def test_more_than_two_classes() -> None:
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    svm = SVMPlus().fit(X[::2], names[::2], xstar=X[::2, 2:])
    assert svm.decision_function(X).shape == (150, 3)
    assert svm.score(X[1::2], names[1::2]) > 0.93


def test_mistakes_are_named() -> None:
    X, y, XS = made(10)
    with pytest.raises(LupiError, match="xstar has 5 rows, but X has 10"):
        SVMPlus().fit(X, y, xstar=XS[:5])
    with pytest.raises(LupiError, match=r"C=-1, xstar_weight=.*; both must be more than 0"):
        SVMPlus(-1).fit(X, y)
    with pytest.raises(LupiError, match="kernel: got 'poly'; expected 'linear' or 'rbf'"):
        SVMPlus(kernel="poly").fit(X, y)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        SVMPlus().fit(X, y, XS).predict(X, XS)  # type: ignore[call-arg]
