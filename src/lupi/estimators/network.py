"""Estimators that train a small network with any method for vectors x*."""

import contextlib
import copy
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted
from torch import nn

from lupi.core import Batch, Task
from lupi.core.gaussian import moments
from lupi.errors import LupiError
from lupi.estimators.features import fit_features, from_torch, read_features
from lupi.estimators.task import GivenRows, split_task
from lupi.loaders.tables.vectors import VectorSplit
from lupi.loaders.xstar.given import check_xstar
from lupi.methods.registry import find_method
from lupi.settings import format_value
from lupi.ship.card import estimator_card
from lupi.ship.description import Description, Extension
from lupi.ship.export import write_student
from lupi.subsets import nested_rows
from lupi.tasks.table_network import TableNetworkSettings, build_network
from lupi.train.evaluate import is_collapsed
from lupi.train.loop import Fitted, Row, fit
from lupi.train.run import new_method, noise_at_best_epoch
from lupi.train.settings import TrainSettings

Array = NDArray[Any]
_ONE_AT_A_TIME = threading.RLock()
ONE_CYCLE = {"optimizer": "adamw", "schedule": "one-cycle"}
MIN_STEPS = 20
"""Minimum number of batches per epoch: small datasets need as many steps as large ones."""


class LupiEstimator(BaseEstimator):  # type: ignore[misc]
    """Base of `LupiClassifier` and `LupiRegressor`.

    x and x* are standardised. Some rows are held out, without x*, to choose the epoch and to stop
    training early.

    Args:
        method: Any method that takes vectors as x* (`lupi methods`), except the oracle.
        settings: Settings of the method, such as `{"beta": 0.1}`.
        n_hidden: Units of each hidden layer.
        n_layers: Number of hidden layers.
        dropout: Rate of Bernoulli dropout, unless the method replaces it by its own noise.
        epochs: Maximum number of epochs.
        batch_size: Rows per batch.
        lr: Initial learning rate of Adam.
        weight_decay: Weight decay of Adam.
        val_frac: Fraction of held-out rows. With 0, training rows are used instead.
        random_state: Seed of initial weights, held-out rows, batch order and noise.
        n_threads: Number of torch threads. A small network is fastest with one.
        network: A function of the numbers of features and outputs that builds a new network, in
            place of n_hidden, n_layers and dropout. Noise enters at its `nn.Dropout` layers.
            Outputs are logits of classes, or mean and log-variance of a number.
    """

    OPTIMIZER: ClassVar[dict[str, str]] = {}
    """Settings of training that are no parameters."""

    def __init__(
        self,
        method: str = "het-dropout",
        settings: dict[str, Any] | None = None,
        *,
        n_hidden: int = 64,
        n_layers: int = 2,
        dropout: float = 0.2,
        epochs: int = 60,
        batch_size: int = 64,
        lr: float = 3e-3,
        weight_decay: float = 1e-4,
        val_frac: float = 0.2,
        random_state: Any = None,
        n_threads: int = 1,
        network: Callable[[int, int], nn.Module] | None = None,
    ) -> None:
        self._store(locals())

    def _store(self, given: dict[str, Any]) -> None:
        """Store the arguments of `__init__` unchanged, as scikit-learn expects."""
        for name in self._get_param_names():
            setattr(self, name, given[name])

    def set_params(self, **params: Any) -> Self:
        """Set parameters; `settings__beta=0.1` sets one of `settings`, as in a grid search."""
        prefix = "settings__"
        own = {k.removeprefix(prefix): v for k, v in params.items() if k.startswith(prefix)}
        super().set_params(**{k: v for k, v in params.items() if not k.startswith(prefix)})
        if own:
            plain = {k: v.item() if isinstance(v, np.generic) else v for k, v in own.items()}
            self.settings: Any = {**(self.settings or {}), **plain}
        return self

    def _fit(self, X: Any, y: Array, n_classes: int | None, xstar: Any) -> None:
        """Train on validated x, encoded y, and x*."""
        method, settings = self._method_for(xstar)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        task = self._task(X, y, n_classes, xstar, seed)
        splits = task.splits(task.n_rows, seed)
        train = self._training(len(splits.train))
        build = partial(new_method, task, method, settings, seed)
        rows: list[Row] = []
        # Training uses torch's global generator: one fit at a time, and its state is restored.
        with (
            _ONE_AT_A_TIME,
            torch.random.fork_rng(devices=[]),
            _threads(self.n_threads),
            tempfile.TemporaryDirectory() as folder,
        ):
            fitted = fit(build, task, splits, train, seed, Path(folder), rows.append)
        if not fitted.best_epoch:
            raise LupiError(
                f"training diverged in its first epoch; use a smaller lr than {self.lr}"
            )
        self.student_ = fitted.method.student().eval().cpu()
        self.method_, self.n_labels_ = method, len(y)
        self.n_iter_ = fitted.epochs
        self.collapsed_ = is_collapsed(noise_at_best_epoch(rows, fitted))
        self._warn(fitted)

    def export(self, out: str | Path, format: Literal["torch", "onnx"] = "torch") -> Path:
        """Write the student to a new folder, without data, method or x*.

        `lupi predict` and `lupi.load_student` read it. A network of your own is written as ONNX,
        which holds its graph; weights alone would need its code.
        """
        check_is_fitted(self)
        method = find_method(self.method_)
        extended = None
        if method.extends_student:
            settings = method.Settings.parse(dict(self.settings or {}), "settings")
            extended = Extension(method=method.name, settings=settings.resolved())
        described = self._describe()
        if format == "torch" and described["network"].get("name") == "custom":
            raise LupiError("network: your own network is exported as ONNX only: format='onnx'")
        description = Description.parse({"extended": extended, **described}, "student")
        return write_student(
            Path(out),
            description,
            self.student_,
            lambda: iter([self._random_inputs()]),
            format,
            partial(estimator_card, description, self.method_, self.n_labels_),
        ).folder

    def _describe(self) -> dict[str, Any]:
        """Return the network, what x is made of, and the meaning of outputs."""
        given = self._given("n_hidden", "n_layers", "dropout")
        network = given if self.network is None else {"name": "custom"}
        return {"network": network, "features": self.encoder_.to_json(), "target": self._target()}

    def _target(self) -> dict[str, Any]:
        if hasattr(self, "classes_"):
            return {"kind": "classification", "classes": [str(name) for name in self.classes_]}
        return {"kind": "regression", "mean": float(self.y_mean_), "std": float(self.y_scale_)}

    def _random_inputs(self) -> torch.Tensor:
        return torch.randn(64, self.encoder_.width, generator=torch.Generator().manual_seed(0))

    def _warn(self, fitted: Fitted) -> None:
        """Warn about divergence and collapse."""
        if fitted.status == "diverged":
            message = f"training diverged; using the student of epoch {fitted.best_epoch}"
            warnings.warn(message, ConvergenceWarning, stacklevel=4)
        if self.collapsed_:
            message = "the noise has collapsed: it no longer depends on x*; lower settings['beta']"
            warnings.warn(message, UserWarning, stacklevel=4)

    def _method_for(self, xstar: Any) -> tuple[str, dict[str, Any]]:
        """Return the method and its settings; without x*, the plain model."""
        method = find_method(self.method)
        if method.sees_xstar_at_test:
            raise LupiError(
                f"method {self.method} predicts from x*; an estimator predicts from x alone"
            )
        if method.uses_xstar and xstar is None:
            return "no-xstar", {}
        return self.method, dict(self.settings or {})

    def _task(self, X: Any, y: Array, n_classes: int | None, xstar: Any, seed: int) -> Task:
        """Standardise x*, and hold rows out."""
        is_given = xstar is not None
        xstar, has = check_xstar(from_torch(xstar), len(y))
        if is_given and not has.any():
            warnings.warn("no row has x*: it has no effect", UserWarning, stacklevel=4)
        mean, scale = _moments(xstar[has], "xstar")
        xs = np.where(has[:, None], (xstar - mean) / scale, 0).astype(np.float32)
        train, val = self._rows(y if n_classes else np.zeros(len(y), dtype=np.int64), seed)
        rows = Batch(torch.from_numpy(X), torch.from_numpy(y))
        privileged = rows._replace(xstar=torch.from_numpy(xs), has_xstar=torch.from_numpy(has))
        given = self._given("n_hidden", "n_layers", "dropout")
        network, n_features = TableNetworkSettings.parse(given, "network"), X.shape[1]
        return split_task(
            GivenRows(
                VectorSplit(privileged.select(torch.from_numpy(train))),
                VectorSplit(rows.select(torch.from_numpy(val))),
                n_classes,
                partial(self._build, network, n_features),
                torch.zeros(2, n_features),
                xs.shape[1],
            )
        )

    def _build(self, settings: TableNetworkSettings, n_features: int, n_outputs: int) -> nn.Module:
        """Build the student: the user's network, or one of fully connected layers."""
        if self.network is None:
            return build_network(settings, n_features, n_outputs)
        net = self.network(n_features, n_outputs)
        if not isinstance(net, nn.Module):
            raise LupiError(
                f"network: expected a function that builds an nn.Module, got one that returns "
                f"{type(net).__name__}"
            )
        return net

    def _training(self, n_rows: int) -> TrainSettings:
        given = self._given("epochs", "batch_size", "lr", "weight_decay")
        settings = TrainSettings.parse(given | self.OPTIMIZER, "train")
        one_pass = -(-n_rows // settings.batch_size)  # rounded up
        return settings.model_copy(update={"steps_per_epoch": max(MIN_STEPS, one_pass)})

    def _rows(self, labels: NDArray[np.int64], seed: int) -> tuple[Array, Array]:
        """Return stratified training and validation rows; the same rows for both if too few."""
        if not 0 <= self.val_frac < 1:
            raise LupiError(f"val_frac: got {self.val_frac}; expected a fraction in [0, 1)")
        every = np.arange(len(labels))
        n_train = len(labels) - round(self.val_frac * len(labels))
        train = nested_rows(labels, n_train, seed, balanced=False) if n_train else every
        val = np.setdiff1d(every, train)
        return (train, val) if len(val) and len(train) > 1 else (every, every)

    def _given(self, *names: str) -> dict[str, Any]:
        """Return the parameters as Python numbers; grid searches pass NumPy's."""
        values = {name: getattr(self, name) for name in names}
        return {k: v.item() if isinstance(v, np.generic) else v for k, v in values.items()}

    @torch.no_grad()
    def _outputs(self, X: Any) -> torch.Tensor:
        """Return the student's output for each row.

        Computed in double precision, so that the result does not depend on the other rows.
        """
        check_is_fitted(self)
        student = copy.deepcopy(self.student_).double()
        x = torch.from_numpy(read_features(self, X, self.encoder_)).double()
        return torch.cat([student(rows) for rows in x.split(4096)])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags


class ClassEstimator(ClassifierMixin, LupiEstimator):  # type: ignore[misc]
    """Common base of the classifiers of vectors and texts."""

    def _class_numbers(self, y: Array) -> Array:
        """Store the classes, and return the class index of each row."""
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            one = format_value(self.classes_[0])
            raise ValueError(f"a classifier needs two classes; y has one class: {one}")
        numbers: Array = codes.astype(np.int64)
        return numbers

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each of `classes_`, (N, K)."""
        probabilities: Array = self._outputs(X).softmax(1).numpy()
        return probabilities

    def predict(self, X: Any) -> Array:
        """Return the class of each row. x* can't be passed."""
        best = self.predict_proba(X).argmax(1)  # refuses an estimator that is not fitted
        return np.asarray(self.classes_[best])


class NumberEstimator(RegressorMixin, LupiEstimator):  # type: ignore[misc]
    """Common base of the regressors of vectors and texts."""

    def _scaled(self, y: Array) -> Array:
        """Store mean and deviation of y, and return it in that unit."""
        self.y_mean_, self.y_scale_ = _moments(y.astype(np.float64), "y")
        return np.asarray((y - self.y_mean_) / self.y_scale_, dtype=np.float32)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return the mean for each row and, with `return_std`, also the standard deviation."""
        mean, logvar = (part.numpy() for part in moments(self._outputs(X)))
        mean = mean * self.y_scale_ + self.y_mean_
        return (mean, np.exp(logvar / 2) * self.y_scale_) if return_std else mean


class LupiClassifier(ClassEstimator):
    """Classifier of vectors that trains with x* and predicts without it."""

    def fit(self, X: Any, y: Any, xstar: Any = None) -> Self:
        """Train.

        Args:
            X: (N, F) numbers, dense or sparse; or a data frame, categories and dates among its
                columns. Values may be missing.
            y: classes, (N,).
            xstar: (N, D) numbers, NaN where missing; None: the plain model, `no-xstar`.
        """
        X, y, self.encoder_ = fit_features(self, X, y)
        numbers = self._class_numbers(y)
        self._fit(X, numbers, len(self.classes_), xstar)
        return self


class LupiRegressor(NumberEstimator):
    """Regressor of vectors that trains with x* and predicts a normal distribution without it."""

    def fit(self, X: Any, y: Any, xstar: Any = None) -> Self:
        """Train: as `LupiClassifier.fit`, with numbers as y."""
        X, y, self.encoder_ = fit_features(self, X, y, y_numeric=True)
        self._fit(X, self._scaled(y), None, xstar)
        return self


@contextlib.contextmanager
def _threads(n: int) -> Iterator[None]:
    """Set the number of torch threads temporarily."""
    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _moments(values: Array, name: str) -> tuple[Any, Any]:
    """Return mean and standard deviation of each column; 1 for constant columns."""
    if not len(values):
        return 0.0, 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        mean, std = values.mean(axis=0), values.std(axis=0)
    if not (np.isfinite(mean).all() and np.isfinite(std).all()):
        largest = np.abs(values).max()
        raise ValueError(
            f"{name} has values up to {largest:.3g}, whose variance is too large for a float; "
            "correct them, or divide the column by a constant"
        )
    return mean, np.where(std > 0, std, 1.0)
