"""A task over rows in memory, for estimators: training and validation rows are given."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from lupi.core import Control, GivenRows, OutputKind, Places, Split, Splits, XstarKind
from lupi.records import Metric
from lupi.tasks.outcomes import Outcome


@dataclass
class SplitTask(GivenRows):
    """Classification or regression with given training and validation rows."""

    train: Split
    """Rows with x*; y is a class, or a standardised number."""
    val: Split
    n_classes: int | None
    """None for regression."""
    build: Callable[[int], nn.Module]
    """The number of outputs to a new network."""
    two_rows: Tensor
    """Two rows of x."""
    xstar_dim: int
    xstar_kind: XstarKind = "vector"
    places: Places | None = None
    metric = Metric("log_likelihood")

    @property
    def outcome(self) -> Outcome:
        """What is predicted."""
        return Outcome(tuple(map(str, range(self.n_classes or 0))))

    @property
    def output_kind(self) -> OutputKind:
        """Kind of output."""
        return self.outcome.output_kind

    @property
    def n_outputs(self) -> int:
        """Number of outputs per row."""
        return self.outcome.n_outputs

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        """Number of training rows."""
        return len(self.train)

    def splits(
        self,
        size: int,
        seed: int,
        control: Control = "real",
        xstar_frac: float = 1.0,
        reveal: bool = False,
    ) -> Splits:
        """Return the given rows."""
        return Splits(self.train, self.val, self.val)

    def network(self) -> nn.Module:
        """Build the student, freshly initialised."""
        return self.build(self.n_outputs)

    def example(self) -> Tensor:
        """Return two rows."""
        return self.two_rows

    def example_loss(self, output: Tensor, y: Tensor) -> Tensor:
        """Return the cross-entropy, or the negative log-likelihood, of each row, (B,)."""
        return self.outcome.example_loss(output, y)

    def metrics(self, output: Tensor, y: Tensor, weights: Any = None) -> dict[str, float]:
        """Return the mean log-likelihood, by which the best epoch is chosen."""
        return {"log_likelihood": -self.example_loss(output, y).mean().item()}

    def trivial(self, train: Split, test: Split) -> dict[str, float]:
        """Return nothing: scikit-learn does the scoring."""
        return {}

    def is_uninformative(self, output: Tensor) -> bool:
        """Accept the same output for every row: there may be nothing to learn."""
        return False
