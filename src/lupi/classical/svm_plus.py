"""SVM+, the first method for privileged information: x* predicts the slack of each row.

    minimise  |w|^2 / 2 + g |w*|^2 / 2 + C sum_i xi_i,     xi_i = w* . x*_i + b*
    such that y_i (w . x_i + b) >= 1 - xi_i,   xi_i >= 0

Vapnik, Vashist: "A new learning paradigm: learning using privileged information", Neural Networks
22, 2009. Its dual, with d = alpha + beta - C, is solved exactly (`quadratic.py`):

    maximise  sum alpha - (alpha y)' K (alpha y) / 2 - d' K* d / (2 g)
    such that alpha, beta >= 0,   sum alpha y = 0,   sum d = 0

A row without x* has a free slack, as in a plain SVM: d_i = 0. So an SVM+ without any x* is
scikit-learn's `SVC`. More than two classes are handled one against the rest.
"""

from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from lupi.classical.quadratic import Array, solve
from lupi.errors import LupiError
from lupi.loaders.xstar.given import check_xstar
from lupi.settings import format_value

Kernel = Literal["linear", "rbf"]


class SVMPlus(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Support vector machine whose slacks are a function of x*, for up to a few thousand rows.

    Args:
        C: Penalty on slack.
        kernel: Kernel of x.
        gamma: Width of the rbf kernel of x; `scale` is 1 / (columns * variance), as in `SVC`.
        xstar_kernel: Kernel of x*.
        xstar_gamma: Width of the rbf kernel of x*.
        xstar_weight: Weight of the squared norm of the function from x* to slack (Vapnik's
            gamma). If small, slacks are free, as in a plain SVM; if large, all rows with x* have
            the same slack.
    """

    def __init__(
        self,
        C: float = 1.0,
        kernel: Kernel = "rbf",
        gamma: float | Literal["scale"] = "scale",
        xstar_kernel: Kernel = "rbf",
        xstar_gamma: float | Literal["scale"] = "scale",
        xstar_weight: float = 1.0,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.xstar_kernel = xstar_kernel
        self.xstar_gamma = xstar_gamma
        self.xstar_weight = xstar_weight

    def fit(self, X: Any, y: Any, xstar: Any = None, sample_weight: Any = None) -> Self:
        """Train.

        Args:
            X: (N, F), dense or sparse.
            y: classes, (N,).
            xstar: (N, D), NaN where it is missing; None: a plain SVM.
            sample_weight: (N,), factors of C; None: 1.
        """
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_classification_targets(y)
        if not (self.C > 0 and self.xstar_weight > 0):
            raise LupiError(
                f"got C={self.C}, xstar_weight={self.xstar_weight}; both must be more than 0"
            )
        XS, has = check_xstar(xstar, len(y))
        weights = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        if (counts := weights > 0).sum() < len(y):
            X, y, XS, has, weights = (rows[counts] for rows in (X, y, XS, has, weights))
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise ValueError(
                f"SVMPlus needs two classes; y has one class: {format_value(self.classes_[0])}"
            )
        self._gamma = _width(self.gamma, X, weights)
        K = self._kernel(X, X)
        xstar_gamma = _width(self.xstar_gamma, XS[has], weights[has]) if has.any() else 1.0
        K_star = _kernel(self.xstar_kernel, xstar_gamma, XS, XS)[np.ix_(has, has)]
        P = K_star / self.xstar_weight
        positives = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        prices = self.C * weights
        machines = [solve_dual(K, P, np.where(y == c, 1.0, -1.0), has, prices) for c in positives]
        coefficients = np.stack([machine.alpha_y for machine in machines])  # (machines, N)
        self.support_ = np.flatnonzero((np.abs(coefficients) > 1e-7 * self.C).any(axis=0))
        self.support_vectors_ = X[self.support_]
        self.dual_coef_ = coefficients[:, self.support_]
        self.intercept_ = np.array([machine.intercept for machine in machines])
        return self

    def decision_function(self, X: Any) -> Array:
        """Return the decision values for two classes (N,), or one score per class (N, K)."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        scores: Array = self._kernel(X, self.support_vectors_) @ self.dual_coef_.T + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row. x* can't be passed."""
        scores = self.decision_function(X)
        best = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(1)
        classes: NDArray[Any] = self.classes_[best]
        return classes

    def _kernel(self, X: Any, Y: Any) -> Array:
        return _kernel(self.kernel, self._gamma, X, Y)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _kernel(name: Kernel, gamma: float, X: Any, Y: Any) -> Array:
    if name not in ("linear", "rbf"):
        raise LupiError(f"kernel: got {name!r}; expected 'linear' or 'rbf'")
    options = {"gamma": gamma} if name == "rbf" else {}
    kernel: Array = pairwise_kernels(X, Y, metric=name, **options)
    return kernel


def _width(gamma: float | Literal["scale"], X: Any, weights: Array) -> float:
    if gamma != "scale":
        return float(gamma)
    shares = weights / (weights.sum() * X.shape[1])
    squares = X.multiply(X) if hasattr(X, "multiply") else X * X
    variance = (shares @ squares).sum() - (shares @ X).sum() ** 2
    return 1.0 / (X.shape[1] * float(variance)) if variance > 0 else 1.0


class Machine(NamedTuple):
    """A solution for two classes."""

    alpha_y: Array
    """alpha * y: the decision is K @ alpha_y + intercept."""
    intercept: float
    d: Array
    """For the rows with x*: their slack is P @ d + xstar_intercept."""
    xstar_intercept: float


def solve_dual(K: Array, P: Array, y: Array, has: NDArray[np.bool_], C: Array) -> Machine:
    """Solve the dual for two classes.

    Args:
        K: kernel of x, (N, N).
        P: kernel of the rows that have x*, over the weight of its function: K* / g, (M, M).
        y: 1 or -1, (N,).
        has: whether each row has x*, (N,).
        C: penalty on each row's slack, (N,).
    """
    n, m = len(y), int(has.sum())
    # Variables: alpha of every row, then beta of the rows with x*.
    H = np.zeros((n + m, n + m))
    H[:n, :n] = np.outer(y, y) * K
    rows = np.concatenate([np.flatnonzero(has), np.arange(n, n + m)])
    H[np.ix_(rows, rows)] += np.tile(P, (2, 2))
    p = np.concatenate([np.ones(n), np.zeros(m)])
    p[rows] += np.tile(P @ C[has], 2)
    A, b = np.concatenate([y, np.zeros(m)])[None], np.zeros(1)
    if m:
        sums_d = np.isin(np.arange(n + m), rows).astype(np.float64)
        A, b = np.vstack([A, sums_d]), np.array([0.0, C[has].sum()])
    upper = np.concatenate([np.where(has, np.inf, C), np.full(m, np.inf)])
    z, nu, *_ = solve(H, p, A, b, upper)
    d = z[:n][has] + z[n:] - C[has]
    return Machine(z[:n] * y, -float(nu[0]), d, -float(nu[1]) if m else 0.0)
