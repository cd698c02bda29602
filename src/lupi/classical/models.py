"""Families of classical models by name. All but `svm-plus` use only x.

scikit-learn is imported where it is used: it takes seconds, and most processes never need it.
"""

from itertools import islice
from typing import Any, ClassVar

from pydantic import Field

from lupi.core import Control, OutputKind, XstarKind
from lupi.settings import Settings


class Classical:
    """A family of models, one of which is chosen on validation rows."""

    name: ClassVar[str]
    summary: ClassVar[str]
    classical: ClassVar[bool] = True
    uses_xstar: ClassVar[bool] = False
    sees_xstar_at_test: ClassVar[bool] = False
    controls: ClassVar[tuple[Control, ...]] = ()
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
    """Minimum number of rows in a leaf."""
    learning_rate: float = Field(0.1, gt=0, le=1)
    """Weight of each tree."""


class GradientBoosting(Classical):
    """Boosted trees."""

    name = "gradient-boosting"
    summary = "classical: boosted trees on x, not a network"
    Settings = GradientBoostingSettings

    @staticmethod
    def candidates(settings: GradientBoostingSettings, kind: OutputKind, seed: int) -> list[Any]:
        """Return all pairs of sizes."""
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

        is_class = kind == "classes"
        family = HistGradientBoostingClassifier if is_class else HistGradientBoostingRegressor
        largest = max(settings.max_iter)
        models = {
            min_samples_leaf: family(
                max_iter=largest,
                min_samples_leaf=min_samples_leaf,
                learning_rate=settings.learning_rate,
                early_stopping=False,
                random_state=seed % 2**32,
            )
            for min_samples_leaf in settings.min_samples_leaf
        }
        n_trees = sorted(settings.max_iter)
        return [FirstTrees(model, n) for n in n_trees for model in models.values()]


class FirstTrees:
    """The first trees of a boosted model, equal to a model with so few trees.

    Candidates share the model, which the first of them fits.

    Args:
        model: The model with all trees, not fitted.
        n: Number of trees to use.
    """

    def __init__(self, model: Any, n: int) -> None:
        self._model, self._n = model, n

    def fit(self, x: Any, y: Any, **weights: Any) -> None:
        """Fit all trees, unless another candidate has done so."""
        if not hasattr(self._model, "n_iter_"):
            self._model.fit(x, y, **weights)

    @property
    def classes_(self) -> Any:
        """The classes."""
        return self._model.classes_

    def predict(self, x: Any) -> Any:
        """Return the predicted numbers."""
        return next(islice(self._model.staged_predict(x), self._n - 1, None))

    def predict_proba(self, x: Any) -> Any:
        """Return the probability of each class."""
        return next(islice(self._model.staged_predict_proba(x), self._n - 1, None))


class LinearSettings(Settings):
    """What validation chooses from."""

    penalty: tuple[float, ...] = Field((0.01, 0.1, 1.0, 10.0, 100.0), min_length=1)
    """Weights of the squared norm."""


class Linear(Classical):
    """Logistic or ridge regression."""

    name = "linear"
    summary = "classical: logistic or ridge regression on x, not a network"
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
    """Penalties on slack."""


class Svm(Classical):
    """A support vector machine, equivalent to SVM+ without x*."""

    name = "svm"
    summary = "classical: support vector machine on x, not a network"
    output_kinds = ("classes",)
    Settings = SvmSettings

    @staticmethod
    def candidates(settings: SvmSettings, kind: OutputKind, seed: int) -> list[Any]:
        """Return one model per value of C."""
        from sklearn.svm import SVC

        return [SVC(C=C) for C in settings.C]


class SvmPlusSettings(SvmSettings):
    """What validation chooses from."""

    xstar_weight: tuple[float, ...] = Field((0.01, 1.0, 100.0), min_length=1)
    """Weights of the function from x* to slack; small values approach a plain SVM."""


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
        """Return all pairs of C and weight."""
        from lupi.classical.svm_plus import SVMPlus

        return [SVMPlus(C=C, xstar_weight=g) for C in settings.C for g in settings.xstar_weight]


CLASSICAL: dict[str, type[Classical]] = {
    model.name: model for model in (GradientBoosting, Linear, Svm, SvmPlus)
}
