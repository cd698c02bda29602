"""Tasks: what data mean. The kinds of x, x* and outputs, splits, and what every task says."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, Self

from torch import Generator, Tensor, nn

from lupi.core.batch import Batch, Inputs
from lupi.design import Design
from lupi.facts import Fact
from lupi.records import Metric

XstarKind = Literal["region", "vector"]
"""region: a map over the places of x in [0, 1], 1 on what matters: (B, 1, H, W) over the pixels of
a image, (B, 1, T) over the words of a text; vector: (B, D)."""

Places = Literal["pixels", "words"]
"""What x consists of where x* is a region: pixels (B, C, H, W), or words (B, T) with 0 for none."""

OutputKind = Literal["classes", "gaussian", "tokens"]
"""classes: logits (B, K); gaussian: mean and log-variance of a number, (B, 2); tokens: logits of
each word of a sequence (B, T, K), T of each batch's own."""

Control = Literal["real", "shuffled", "constant", "random", "lexicon"]
"""What a training row's x* is: its own, another row's, the mean, or a random draw; of texts also
the words of a list."""


class Split(Protocol):
    """Some rows of a data set."""

    def __len__(self) -> int: ...

    def batches(self, batch_size: int, shuffle: Generator | None = None) -> Iterator[Batch]:
        """Yield all rows: in their order, or shuffled (and augmented) by a generator."""
        ...


@dataclass(frozen=True, slots=True)
class Splits:
    """Training rows (with x*), validation rows and test rows (without)."""

    train: Split
    val: Split
    test: Split
    also: Mapping[str, Split] = field(default_factory=dict)
    """Other views of the test rows, scored beside them: such as ten crops of each image."""


class Generated(NamedTuple):
    """What a student wrote for a split, and how good that is."""

    lines: list[str]
    scores: dict[str, float]
    signatures: dict[str, str]
    """How each score was computed, as others write it."""


class Task(Protocol):
    """What the data mean: rows, networks, loss per example and metrics. Knows no method."""

    @property
    def metric(self) -> Metric:
        """What students are judged by."""
        ...

    @property
    def output_kind(self) -> OutputKind:
        """What a network gives for a row."""
        ...

    @property
    def n_outputs(self) -> int:
        """Numbers that a network gives: for each row, or for each word of a row (tokens)."""
        ...

    @property
    def xstar_kind(self) -> XstarKind:
        """What x* is."""
        ...

    @property
    def xstar_dim(self) -> int:
        """Channels of a region (1), or the length of a vector; 0: the data have no x*."""
        ...

    @property
    def places(self) -> Places | None:
        """What a region is a map over; None where x* is a vector."""
        ...

    @property
    def n_rows(self) -> int:
        """Rows to choose training rows from."""
        ...

    @property
    def design(self) -> Design:
        """How the rows of each seed are drawn."""
        ...

    @property
    def facts(self) -> Sequence[Fact]:
        """What was read, for the user to check before training."""
        ...

    @property
    def warnings(self) -> Sequence[str]:
        """What in the data may make a comparison say too much."""
        ...

    @property
    def found(self) -> Mapping[str, int]:
        """What was wrong with the data, or had to be changed, and how often."""
        ...

    def for_run(self, size: int, seed: int) -> "Task":
        """Return the task with all that is learned from the training rows of a run."""
        ...

    def splits(
        self,
        size: int,
        seed: int,
        control: Control = "real",
        xstar_frac: float = 1.0,
        reveal: bool = False,
    ) -> Splits:
        """Return `size` training rows, a fraction of them with x* under a control.

        With `reveal`, which is for an oracle only, validation and test rows carry x* too.
        """
        ...

    def preprocessing(self, size: int, seed: int) -> dict[str, Any] | None:
        """Return what a student of a run needs to predict new data, as plain values."""
        ...

    def network(self) -> nn.Module:
        """Build the student, freshly initialised."""
        ...

    def example(self) -> Inputs:
        """Return two rows of x, to find out the shapes inside a network."""
        ...

    def example_loss(self, output: Tensor, y: Tensor) -> Tensor:
        """Return the loss of each row, (B,); of several targets (words), their sum."""
        ...

    def condense(self, output: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return what metrics need of a batch's outputs and targets, (B, ...)."""
        ...

    def metrics(self, output: Tensor, y: Tensor, weights: Tensor | None = None) -> dict[str, float]:
        """Score a whole split, condensed; with the weights of its rows (B,), if they have any."""
        ...

    def trivial(self, train: Split, test: Split) -> dict[str, float]:
        """Score the best predictor that ignores x."""
        ...

    def is_uninformative(self, output: Tensor) -> bool:
        """Tell whether the outputs are the same whatever x is (uniform logits)."""
        ...

    def generate(
        self, net: nn.Module, split: Split, part: Literal["val", "test"]
    ) -> Generated | None:
        """Search for the best outputs of a split and score them: once, after training."""
        ...

    def save(self, folder: Path) -> None:
        """Write the files that it takes to use a student where the data are not."""
        ...


class OneOutputPerRow:
    """What tasks have in common that need no search, and whose outputs are as long as any other."""

    def condense(self, output: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return both as they are."""
        return output, y

    def generate(self, net: nn.Module, split: Split, part: Literal["val", "test"]) -> None:
        """Return nothing: an output is all there is to score."""

    def save(self, folder: Path) -> None:
        """Write nothing: `preprocessing` is enough."""


class GivenRows(OneOutputPerRow):
    """What tasks have in common whose rows are given as they are, ready to learn from."""

    n_rows: int
    places: Places | None = None
    facts: Sequence[Fact] = ()
    warnings: Sequence[str] = ()
    found: Mapping[str, int] = {}

    @property
    def design(self) -> Design:
        """All seeds have the same rows."""
        return Design(self.n_rows, "fixed")

    def for_run(self, size: int, seed: int) -> Self:
        """Return the task itself: nothing is learned from the rows before training."""
        return self

    def preprocessing(self, size: int, seed: int) -> None:
        """Return nothing: whoever gives rows has prepared them."""
