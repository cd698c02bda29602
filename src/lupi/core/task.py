"""Tasks: kinds of x, x* and outputs, splits, and what every task provides."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, Self, runtime_checkable

from torch import Generator, Tensor, nn

from lupi.core.batch import Batch, Inputs
from lupi.design import Design
from lupi.facts import Fact
from lupi.records import Metric

XstarKind = Literal["region", "vector"]
"""region: a map over the places of x in [0, 1], 1 on what matters: (B, 1, H, W) over the pixels of
an image, (B, 1, T) over the words of a text; vector: (B, D)."""

Places = Literal["pixels", "words"]
"""What a region is a map over: pixels (B, C, H, W), or words (B, T) where 0 is padding."""

OutputKind = Literal["classes", "gaussian", "tokens"]
"""classes: logits (B, K); gaussian: mean and log-variance of a number, (B, 2); tokens: logits of
each word of a sequence (B, T, K), where T differs between batches."""

Control = Literal["real", "shuffled", "constant", "random", "lexicon"]
"""What the x* of a training row is: its own, another row's, the mean, or random; for texts also the
words of a list."""


class Split(Protocol):
    """Some rows of a dataset."""

    def __len__(self) -> int: ...

    def batches(self, batch_size: int, shuffle: Generator | None = None) -> Iterator[Batch]:
        """Yield all rows in batches: in order, or shuffled (and augmented) by a generator."""
        ...


@runtime_checkable
class SortableSplit(Split, Protocol):
    """Rows that take less time in an order of their own, such as sentences by length."""

    def sort(self) -> tuple[Split, Tensor]:
        """Return the rows in that order, and for each row of this split its place there (N,)."""
        ...


@dataclass(frozen=True, slots=True)
class Splits:
    """Training rows (with x*), validation rows and test rows (without)."""

    train: Split
    val: Split
    test: Split
    also: Mapping[str, Split] = field(default_factory=dict)
    """Other versions of the test rows that are scored, too, such as ten crops of each image."""


class Generated(NamedTuple):
    """What a student generated for a split, and its scores."""

    lines: list[str]
    scores: dict[str, float]
    signatures: dict[str, str]
    """How each score was computed, in the usual notation."""


class Task(Protocol):
    """What data mean: rows, network, loss per row and metrics. Tasks know no methods."""

    @property
    def metric(self) -> Metric:
        """Metric that students are judged by."""
        ...

    @property
    def output_kind(self) -> OutputKind:
        """Kind of output of a network."""
        ...

    @property
    def n_outputs(self) -> int:
        """Number of outputs of a network: per row, or per word of a row (tokens)."""
        ...

    @property
    def xstar_kind(self) -> XstarKind:
        """Kind of x*."""
        ...

    @property
    def xstar_dim(self) -> int:
        """Channels of a region (1), or length of a vector; 0 if the data have no x*."""
        ...

    @property
    def places(self) -> Places | None:
        """What a region is a map over; None if x* is a vector."""
        ...

    @property
    def n_rows(self) -> int:
        """Number of rows that training rows are drawn from."""
        ...

    @property
    def design(self) -> Design:
        """How the rows of each seed are drawn."""
        ...

    @property
    def facts(self) -> Sequence[Fact]:
        """Facts about the data, for the user to check before training."""
        ...

    @property
    def warnings(self) -> Sequence[str]:
        """Problems of the data that may make a verdict misleading."""
        ...

    @property
    def finding_counts(self) -> Mapping[str, int]:
        """Problems that were found in the data, or values that were changed, with their counts."""
        ...

    def for_run(self, size: int, seed: int) -> "Task":
        """Return the task with everything fitted on the training rows of a run."""
        ...

    def splits(
        self,
        size: int,
        seed: int,
        control: Control = "real",
        xstar_frac: float = 1.0,
        reveal: bool = False,
    ) -> Splits:
        """Return held-out rows, and `size` training rows, a fraction of them with x*.

        With `reveal`, which is for an oracle only, validation and test rows have x*, too.
        """
        ...

    def preprocessing(self, size: int, seed: int) -> dict[str, Any] | None:
        """Return what a student needs to predict new data, as plain values."""
        ...

    def network(self) -> nn.Module:
        """Build the student, freshly initialised."""
        ...

    def example(self) -> Inputs:
        """Return two rows of x, from which shapes inside a network are found."""
        ...

    def example_loss(self, output: Tensor, y: Tensor) -> Tensor:
        """Return the loss of each row, (B,): the sum over targets if it has several (words)."""
        ...

    def condense(self, output: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return the parts of outputs and targets that metrics need, (B, ...)."""
        ...

    def metrics(self, output: Tensor, y: Tensor, weights: Tensor | None = None) -> dict[str, float]:
        """Return the scores of a whole split from what `condense` returned, and weights (B,)."""
        ...

    def trivial(self, train: Split, test: Split) -> dict[str, float]:
        """Return the scores of the best predictor that ignores x."""
        ...

    def is_uninformative(self, output: Tensor) -> bool:
        """Return whether the outputs do not depend on x (uniform logits)."""
        ...

    def generate(
        self, net: nn.Module, split: Split, part: Literal["val", "test"]
    ) -> Generated | None:
        """Generate outputs for a split and score them, once after training; None if not needed."""
        ...

    def save(self, folder: Path) -> None:
        """Write the files that are needed to use a student without the data."""
        ...


class OneOutputPerRow:
    """Base of tasks with one output per row, which need no generation."""

    def condense(self, output: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return both unchanged."""
        return output, y

    def generate(self, net: nn.Module, split: Split, part: Literal["val", "test"]) -> None:
        """Return None: the outputs themselves are scored."""

    def save(self, folder: Path) -> None:
        """Write nothing: `preprocessing` is enough."""


class GivenRows(OneOutputPerRow):
    """Base of tasks whose rows are used as they are given."""

    n_rows: int
    places: Places | None = None
    facts: Sequence[Fact] = ()
    warnings: Sequence[str] = ()
    finding_counts: Mapping[str, int] = {}

    @property
    def design(self) -> Design:
        """Design: all seeds have the same test rows."""
        return Design(self.n_rows, "fixed")

    def for_run(self, size: int, seed: int) -> Self:
        """Return the task itself: nothing is fitted before training."""
        return self

    def preprocessing(self, size: int, seed: int) -> None:
        """Return None: rows are given already prepared."""
