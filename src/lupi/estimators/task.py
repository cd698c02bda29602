"""A task over arrays in memory, for estimators."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lupi.core import Batch, Control, GivenRows, OutputKind, Split, Splits, XstarKind
from lupi.core.gaussian import gaussian_cross_entropy
from lupi.loaders.tables.vectors import VectorSplit
from lupi.records import Metric
from lupi.tasks.table_network import TableNetworkSettings, build_network


class ArrayTask(GivenRows):
    """Classification or regression of vectors with given training and validation rows.

    Args:
        train: x (N, F), y, x* (N, D) and which rows have it. y is a class, or a standardised
            number, for which the network predicts mean and log-variance.
        val: x and y.
        n_classes: None for regression.
        network: Settings of the student's network.
    """

    metric = Metric("loss", higher_is_better=False)
    xstar_kind: XstarKind = "vector"

    def __init__(
        self, train: Batch, val: Batch, n_classes: int | None, network: TableNetworkSettings
    ) -> None:
        assert train.xstar is not None
        self._parts = Splits(VectorSplit(train), VectorSplit(val), VectorSplit(val))
        self._n_features = train.x.shape[1]
        self._network_settings = network
        self.n_outputs = n_classes or 2
        self.n_rows = len(train.y)
        self.xstar_dim = train.xstar.shape[1]
        self.output_kind: OutputKind = "classes" if n_classes else "gaussian"

    def splits(
        self,
        size: int,
        seed: int,
        control: Control = "real",
        xstar_frac: float = 1.0,
        reveal: bool = False,
    ) -> Splits:
        """Return the given rows; the caller of `fit` has chosen them."""
        return self._parts

    def network(self) -> nn.Module:
        """Build the student, freshly initialised."""
        return build_network(self._network_settings, self._n_features, self.n_outputs)

    def example(self) -> Tensor:
        """Return two rows."""
        return torch.zeros(2, self._n_features)

    def example_loss(self, output: Tensor, y: Tensor) -> Tensor:
        """Return the cross-entropy, or the negative log-likelihood, of each row, (B,)."""
        if self.output_kind == "gaussian":
            return gaussian_cross_entropy(output, y)
        return F.cross_entropy(output, y, reduction="none")

    def metrics(self, output: Tensor, y: Tensor, weights: Tensor | None = None) -> dict[str, float]:
        """Return the mean loss, by which the best epoch is chosen."""
        return {"loss": self.example_loss(output, y).mean().item()}

    def trivial(self, train: Split, test: Split) -> dict[str, float]:
        """Return nothing: scikit-learn does the scoring."""
        return {}

    def is_uninformative(self, output: Tensor) -> bool:
        """Accept the same output for every row: there may be nothing to learn."""
        return False
