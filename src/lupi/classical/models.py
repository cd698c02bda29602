"""Families of classical models by name. All but `svm-plus` use only x.

scikit-learn is imported where it is used: it takes seconds, and most processes never need it.
"""

import copy
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
        largest: dict[int, Boosted | None] = dict.fromkeys(settings.min_samples_leaf)
        models = []
        for max_iter in sorted(settings.max_iter):
            for min_samples_leaf, smaller in largest.items():
                model = family(
                    max_iter=max_iter,
                    min_samples_leaf=min_samples_leaf,
                    learning_rate=settings.learning_rate,
                    early_stopping=False,
                    random_state=seed % 2**32,
                    warm_start=True,
                )
                largest[min_samples_leaf] = boosted = Boosted(model, smaller)
                models.append(boosted)
        return models


class Boosted:
    """A boosted model whose first trees are those of a smaller one, fitted before to the same rows.

    Args:
        model: The model, not fitted.
        smaller: One with fewer trees; None to start from scratch.
    """

    def __init__(self, model: Any, smaller: "Boosted | None") -> None:
        self._model, self._smaller = model, smaller

    def fit(self, x: Any, y: Any, **weights: Any) -> None:
        """Fit the trees that the smaller model does not have."""
        if self._smaller is not None:
            max_iter = self._model.max_iter
            self._model = copy.deepcopy(self._smaller._model).set_params(max_iter=max_iter)
        self._model.fit(x, y, **weights)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


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
