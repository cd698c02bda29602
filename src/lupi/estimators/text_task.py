"""A task over texts in memory, for estimators."""

import torch
from torch import Tensor, nn

from lupi.core import Control, GivenRows, OutputKind, Places, Split, Splits, XstarKind
from lupi.loaders.text.text_rows import TextSplit
from lupi.records import Metric
from lupi.tasks.outcomes import Outcome
from lupi.tasks.text.network import N_EXAMPLE_WORDS, TextNetworkSettings, build_network


class TextsInMemory(GivenRows):
    """Classification or regression of texts with given training and validation rows.

    Args:
        train: Training rows with rationales.
        val: Validation rows without rationales.
        n_classes: None for regression of standardised numbers.
        network: Settings of the student's network.
        n_words: Number of word indices, including 0 for padding.
    """

    metric = Metric("log_likelihood")
    xstar_kind: XstarKind = "region"
    places: Places | None = "words"
    xstar_dim = 1

    def __init__(
        self,
        train: TextSplit,
        val: TextSplit,
        n_classes: int | None,
        network: TextNetworkSettings,
        n_words: int,
    ) -> None:
        self._parts = Splits(train, val, val)
        self._outcome = Outcome(tuple(map(str, range(n_classes or 0))))
        self._network, self._n_words = network, n_words
        self.output_kind: OutputKind = self._outcome.output_kind
        self.n_outputs, self.n_rows = self._outcome.n_outputs, len(train)

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
        return build_network(self._network, self._n_words, self.n_outputs)

    def example(self) -> Tensor:
        """Return two rows of words."""
        return torch.ones(2, N_EXAMPLE_WORDS, dtype=torch.long)

    def example_loss(self, output: Tensor, y: Tensor) -> Tensor:
        """Return the loss of each row, (B,)."""
        return self._outcome.example_loss(output, y)

    def metrics(self, output: Tensor, y: Tensor, weights: Tensor | None = None) -> dict[str, float]:
        """Return the mean log-likelihood, by which the best epoch is chosen."""
        return {"log_likelihood": -self.example_loss(output, y).mean().item()}

    def trivial(self, train: Split, test: Split) -> dict[str, float]:
        """Return nothing: scikit-learn does the scoring."""
        return {}

    def is_uninformative(self, output: Tensor) -> bool:
        """Accept the same output for every row: there may be nothing to learn."""
        return False
