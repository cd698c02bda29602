"""Classical models on the same rows: what a network must beat to be worth shipping.

No students: a model like scikit-learn's learns from a run's training rows, its strength is chosen
by the validation rows, and the test rows are read once. Their runs leave records like any other; in
a verdict they are shown and never count for or against x*. All but `svm-plus` learn from x alone.
scikit-learn is imported where it is used: it takes seconds, and most processes never need it.
"""

from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from scipy.special import softmax
from threadpoolctl import threadpool_limits
from torch import Tensor

from lupi.core import Batch, Method, OutputKind, Split, Splits, Task, XstarKind, derive_seed
from lupi.errors import LupiError
from lupi.methods.registry import methods
from lupi.settings import Settings, unknown_name

SMALLEST_PROBABILITY = 1e-6


class Classical:
    """A family of models, of which the validation rows choose one."""

    name: ClassVar[str]
    summary: ClassVar[str]
    uses_xstar: ClassVar[bool] = False
    sees_xstar_at_test: ClassVar[bool] = False
    kinds: ClassVar[tuple[XstarKind, ...]] = ("region", "vector")
    output_kinds: ClassVar[tuple[OutputKind, ...]] = ("classes", "gaussian")
    Settings: ClassVar[type[Settings]]

    @staticmethod
    def candidates(settings: Any, kind: OutputKind, seed: int) -> list[Any]:
        """Return the models to choose from, not fitted."""
        raise NotImplementedError


class GradientBoostingSettings(Settings):
    """What validation chooses from."""

    max_iter: tuple[int, ...] = Field((20, 60, 200), min_length=1)
    """Numbers of trees."""
    min_samples_leaf: tuple[int, ...] = Field((5, 20), min_length=1)
    """Rows in a leaf, at least."""
    learning_rate: float = Field(0.1, gt=0, le=1)


class GradientBoosting(Classical):
    """Boosted trees."""

    name = "gradient-boosting"
    summary = "classical: boosted trees of x, no network"
    Settings = GradientBoostingSettings

    @staticmethod
    def candidates(settings: GradientBoostingSettings, kind: OutputKind, seed: int) -> list[Any]:
        """Return all pairs of sizes."""
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

        is_class = kind == "classes"
        family = HistGradientBoostingClassifier if is_class else HistGradientBoostingRegressor
        return [
            family(
                max_iter=max_iter,
                min_samples_leaf=min_samples_leaf,
                learning_rate=settings.learning_rate,
                early_stopping=False,
                random_state=seed % 2**32,
            )
            for max_iter in settings.max_iter
            for min_samples_leaf in settings.min_samples_leaf
        ]


class LinearSettings(Settings):
    """What validation chooses from."""

    penalty: tuple[float, ...] = Field((0.01, 0.1, 1.0, 10.0, 100.0), min_length=1)
    """Weights of the squared norm."""


class Linear(Classical):
    """Logistic or ridge regression."""

    name = "linear"
    summary = "classical: logistic or ridge regression of x, no network"
    Settings = LinearSettings

    @staticmethod
    def candidates(settings: LinearSettings, kind: OutputKind, seed: int) -> list[Any]:
        """Return one model per penalty."""
        from sklearn.linear_model import LogisticRegression, Ridge

        if kind == "classes":
            return [LogisticRegression(C=1 / p, max_iter=5000) for p in settings.penalty]
        return [Ridge(alpha=p) for p in settings.penalty]


class SvmSettings(Settings):
    """What validation chooses from."""

    C: tuple[float, ...] = Field((0.1, 1.0, 10.0, 100.0), min_length=1)
    """Prices of slack."""


class Svm(Classical):
    """A support vector machine: what SVM+ is without x*."""

    name = "svm"
    summary = "classical: support vector machine of x, no network"
    output_kinds = ("classes",)
    Settings = SvmSettings

    @staticmethod
    def candidates(settings: SvmSettings, kind: OutputKind, seed: int) -> list[Any]:
        """Return one model per price."""
        from sklearn.svm import SVC

        return [SVC(C=C) for C in settings.C]


class SvmPlusSettings(SvmSettings):
    """What validation chooses from."""

    xstar_weight: tuple[float, ...] = Field((0.01, 1.0, 100.0), min_length=1)
    """Weights of the function from x* to slack; small: nearly a plain SVM."""


class SvmPlus(Classical):
    """SVM+ (Vapnik and Vashist 2009)."""

    name = "svm-plus"
    summary = "classical: support vector machine whose slacks are a function of x*"
    uses_xstar = True
    kinds = ("vector",)
    output_kinds = ("classes",)
    Settings = SvmPlusSettings

    @staticmethod
    def candidates(settings: SvmPlusSettings, kind: OutputKind, seed: int) -> list[Any]:
        """Return all pairs of price and weight."""
        from lupi.svm.svm_plus import SVMPlus

        return [SVMPlus(C=C, xstar_weight=g) for C in settings.C for g in settings.xstar_weight]


CLASSICAL: dict[str, type[Classical]] = {
    model.name: model for model in (GradientBoosting, Linear, Svm, SvmPlus)
}

Learner = type[Method] | type[Classical]


def learners() -> dict[str, Learner]:
    """Return all that can be an arm, by name: methods, then classical models."""
    return {**methods(), **CLASSICAL}


def find_learner(name: str) -> Learner:
    """Return the method or classical model of this name."""
    if name not in learners():
        raise LupiError(unknown_name("method", name, list(learners())))
    return learners()[name]


def check_classical(model: type[Classical], task: Task) -> None:
    """Refuse a task whose x is no vector, or whose y is none that the model predicts."""
    if task.output_kind == "tokens":
        raise LupiError(f"{model.name} learns from vectors; x is a sentence here")
    if task.example().dim() != 2:
        raise LupiError(
            f"{model.name} learns from vectors; x is {tuple(task.example().shape[1:])} per row here"
        )
    if task.output_kind not in model.output_kinds:
        raise LupiError(f"{model.name} tells classes apart; the target is a number here")


def score_classical(
    model: type[Classical], settings: Any, task: Task, splits: Splits, seed: int, n_threads: int
) -> dict[str, dict[str, float]]:
    """Fit every candidate, take the best on validation, and return its scores."""
    from sklearn.dummy import DummyClassifier

    train, val, test = (_whole(split) for split in (splits.train, splits.val, splits.test))
    sign = 1 if task.metric.higher_is_better else -1
    candidates = model.candidates(settings, task.output_kind, derive_seed(seed, model.name))
    privileged = {"xstar": _xstar(train)} if model.uses_xstar else {}
    if task.output_kind == "classes" and len(train.y.unique()) == 1:
        candidates = [DummyClassifier(strategy="prior")]
        privileged = {}
    scored: list[tuple[float, Any]] = []
    with threadpool_limits(n_threads):
        for candidate in candidates:
            candidate.fit(train.x.numpy(), train.y.numpy(), **privileged)
            score = task.metrics(_output(candidate, task, val, val), val.y)[task.metric.name]
            scored.append((sign * score, candidate))
        best = max(scored, key=lambda pair: pair[0])[1]
        return {
            name: task.metrics(_output(best, task, part, val), part.y)
            for name, part in (("val", val), ("test", test))
        }


def _whole(split: Split) -> Batch:
    return next(iter(split.batches(max(len(split), 1))))


def _xstar(rows: Batch) -> NDArray[np.float32]:
    """Return x* (N, D), NaN where a row has none."""
    xstar, has = rows.privileged()
    return torch.where(has[:, None], xstar, torch.nan).numpy()


def _output(fitted: Any, task: Task, rows: Batch, val: Batch) -> Tensor:
    """Return what a network would: log-probabilities, or means with one variance for all."""
    if task.output_kind == "classes":
        n_classes = task.network()(task.example()).shape[1]
        return _log_probabilities(fitted, rows.x.numpy(), n_classes)
    mean = _predicted(fitted, rows.x)
    error = _predicted(fitted, val.x) - val.y
    logvar = error.square().mean().clamp(min=1e-8).log()
    return torch.stack([mean, logvar.expand_as(mean)], 1)


def _predicted(fitted: Any, x: Tensor) -> Tensor:
    return torch.from_numpy(np.asarray(fitted.predict(x.numpy()), dtype=np.float32))


def _log_probabilities(fitted: Any, x: NDArray[np.float32], n_classes: int) -> Tensor:
    """Return (N, n_classes); a class that the training rows lack has the smallest probability.

    The scores of a support vector machine count as logits: right in their order, not calibrated.
    """
    probabilities = np.zeros((len(x), n_classes), dtype=np.float32)
    if hasattr(fitted, "predict_proba"):
        probabilities[:, fitted.classes_] = fitted.predict_proba(x)
    else:
        scores = fitted.decision_function(x)
        logits = scores if scores.ndim == 2 else np.stack([0 * scores, scores], axis=1)
        probabilities[:, fitted.classes_] = softmax(logits, axis=1)
    return torch.from_numpy(probabilities).clamp(min=SMALLEST_PROBABILITY).log()
