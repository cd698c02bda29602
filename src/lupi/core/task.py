"""A task as data: rows, how seeds divide them, what is predicted, and the student's network.

Loaders make tasks of tables, texts, images and arrays; plug-ins of anything else. What tasks share
is here, once: which rows a run has, which of them show x*, and when something is fitted to
training rows. Tasks know no methods.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from lupi.core.batch import Inputs, Split, Splits
from lupi.core.outcomes import Outcome, OutputKind
from lupi.design import Design
from lupi.errors import LupiError
from lupi.facts import Fact, list_counts
from lupi.records import Metric
from lupi.settings import Settings
from lupi.subsets import Part, Subgroups, nested_rows, rows_with_xstar

XstarKind = Literal["region", "vector"]
"""region: a map over the places of x in [0, 1], 1 on what matters: (B, 1, H, W) over the pixels of
an image, (B, 1, T) over the words of a text; vector: (B, D)."""

Places = Literal["pixels", "words"]
"""What a region is a map over: pixels (B, C, H, W), or words (B, T) where 0 is padding."""

Control = Literal["real", "shuffled", "constant", "random", "lexicon"]
"""What the x* of a training row is: its own, another row's, the mean, or random; for texts also the
words of a list."""

RowNumbers = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Generated(NamedTuple):
    """What a student generated for a split, and its scores."""

    lines: list[str]
    scores: dict[str, float]
    signatures: dict[str, str]
    """How each score was computed, in the usual notation."""


class Shown(NamedTuple):
    """The x* that the rows of a part show."""

    has: Bools
    """Rows that show x* (N,)."""
    control: Control
    seed: int
    trained: Bools
    """Training rows that show x*: what encodes x* is fitted on them."""


class RunRows(ABC):
    """The rows of one run as batches, encoded with what its training rows taught."""

    outcome: Outcome
    """What is predicted, in the unit of the training rows."""
    xstar_dim: int
    """Channels of a region (1), or length of a vector; 0 if the data have no x*."""

    @abstractmethod
    def has_xstar(self, part: Part) -> Bools:
        """Return which rows of a part have x*, (N,)."""

    @abstractmethod
    def split(self, part: Part, shown: Shown | None = None) -> Split:
        """Return the rows of a part, without x* unless it is shown."""

    @abstractmethod
    def network(self) -> nn.Module:
        """Build the student with new random weights."""

    @abstractmethod
    def example(self) -> Inputs:
        """Return two rows of x, from which shapes inside a network are found."""

    def also(self) -> Mapping[str, Split]:
        """Return other versions of the test rows that are scored, too."""
        return {}

    def facts(self) -> Sequence[Fact]:
        """Return facts about what was fitted."""
        return ()

    def preprocessing(self) -> dict[str, Any]:
        """Return how new inputs become x and what outputs mean, as plain values without x*.

        Empty if rows are given already prepared.
        """
        return {}

    def save(self, folder: Path) -> None:
        """Write files beside `preprocessing` that a student needs without the data."""
        return

    def generate(
        self, net: nn.Module, split: Split, part: Literal["val", "test"]
    ) -> Generated | None:
        """Generate outputs for a split and score them, once after training; None if not needed."""
        return None


class Rows(ABC):
    """All rows that a loader read."""

    @abstractmethod
    def fit(self, parts: Mapping[Part, RowNumbers], seed: int, network: Any) -> RunRows:
        """Return the rows of a run, with everything fitted on its training rows.

        Args:
            parts: Rows of each part; training rows in the order in which they were drawn.
            seed: Seed of the run.
            network: Settings of the student's network.
        """

    def facts(self) -> Sequence[Fact]:
        """Return facts about the data, for the user to check before training."""
        return ()

    def warnings(self) -> Sequence[str]:
        """Return problems of the data that may make a verdict misleading."""
        return ()


class Divides(Protocol):
    """How each seed divides rows; see `loaders.division.Division`."""

    @property
    def n_train(self) -> int:
        """Number of rows that training rows can be chosen from, with any seed."""
        ...

    @property
    def by(self) -> Subgroups | None:
        """Subgroups by which results are shown."""
        ...

    def draw(self, seed: int) -> Mapping[Part, RowNumbers]:
        """Return the rows of each part of a seed."""
        ...

    def classes_of(self, rows: RowNumbers, seed: int) -> RowNumbers:
        """Return the class of each row; zeros if rows have none."""
        ...


@dataclass(frozen=True)
class Task:
    """What data mean: rows, how seeds divide them, what is predicted, and the network."""

    rows: Rows
    division: Divides
    design: Design
    """How the rows of each seed are drawn, for the verdict."""
    outcome: Outcome
    """What is predicted: the loss of a row, and scores."""
    metric: Metric
    """Metric that students are judged by."""
    network_settings: Settings
    xstar_kind: XstarKind
    places: Places | None = None
    """What a region is a map over; None if x* is a vector."""
    xstar_dim: int = 0
    """Channels of a region (1), or length of a vector; 0: not known before `for_run`, or no x*."""
    balanced: bool = False
    """Whether training sets have as many rows of each class, or classes keep their frequencies."""
    finding_counts: Mapping[str, int] = field(default_factory=dict)
    """Problems that were found in the data, or values that were changed, with their counts."""
    run: RunRows | None = None
    """Rows of a run; None before `for_run`."""
    _last: dict[tuple[int, int], tuple[Settings, RunRows]] = field(
        default_factory=dict, repr=False, compare=False
    )
    """The last fitted rows, shared with copies of the task: all arms of a seed use them."""

    @property
    def output_kind(self) -> OutputKind:
        """Kind of output of a network."""
        return self.outcome.output_kind

    @property
    def n_outputs(self) -> int:
        """Number of outputs of a network: per row, or per word of a row (tokens)."""
        return self.outcome.n_outputs

    @property
    def n_rows(self) -> int:
        """Number of rows that training rows are drawn from."""
        return self.division.n_train

    @property
    def facts(self) -> Sequence[Fact]:
        """Facts about the data, and what was fitted, for the user to check before training."""
        return (*self.rows.facts(), *(self.run.facts() if self.run else ()))

    @property
    def warnings(self) -> Sequence[str]:
        """Problems of the data that may make a verdict misleading."""
        return self.rows.warnings()

    def with_network(self, network: Settings) -> "Task":
        """Return the same task for another network."""
        return replace(self, network_settings=network, run=None)

    def for_run(self, size: int, seed: int) -> "Task":
        """Return the task with everything fitted on the training rows of a run."""
        network, run = self._last.get((size, seed), (None, None))
        if run is None or network != self.network_settings:
            run = self.rows.fit(self.draw(size, seed), seed, self.network_settings)
            self._last.clear()
            self._last[size, seed] = self.network_settings, run
        return replace(self, run=run, outcome=run.outcome, xstar_dim=run.xstar_dim)

    def run_facts(self, size: int, seed: int) -> tuple[Fact, ...]:
        """Return facts about a run: its training rows of each class."""
        if not self.outcome.classes:
            return ()
        y = self.division.classes_of(self.draw(size, seed)["train"], seed)
        counts = np.bincount(y, minlength=len(self.outcome.classes)).tolist()
        named = dict(zip(self.outcome.classes, counts, strict=True))
        return (Fact("rows", f"{size:,} to train on, drawn by seed {seed}: {list_counts(named)}"),)

    def draw(self, size: int, seed: int) -> dict[Part, RowNumbers]:
        """Return the rows of a run; small training sets are subsets of larger ones."""
        parts = dict(self.division.draw(seed))
        pool = parts["train"]
        if size > self.n_rows:
            raise LupiError(f"a training set of {size} rows was asked for; there are {self.n_rows}")
        classes = self.division.classes_of(pool, seed)
        return parts | {"train": pool[nested_rows(classes, size, seed, self.balanced)]}

    def splits(
        self,
        size: int,
        seed: int,
        control: Control = "real",
        xstar_frac: float = 1.0,
        reveal: bool = False,
    ) -> Splits:
        """Return `size` training rows with x* under a control, and all of validation and test.

        The fraction is one of the training rows that have x* at all. With `reveal` (an oracle)
        held-out rows have x*, too, under the same control.
        """
        run = self.for_run(size, seed).fitted
        trained = run.has_xstar("train").copy()
        trained[trained] = rows_with_xstar(int(trained.sum()), xstar_frac, seed)

        def held_out(part: Literal["val", "test"]) -> Split:
            if not reveal:
                return run.split(part)
            has = run.has_xstar(part)
            if not has.any():
                raise LupiError(
                    f"an oracle sees x* at test, and the {part} rows have none: leave the oracle "
                    "out"
                )
            return run.split(part, Shown(has, control, seed, trained))

        train = run.split("train", Shown(trained, control, seed, trained))
        by = self.division.by
        subgroups = {} if by is None else by.of(self.division.draw(seed)["test"])
        return Splits(train, held_out("val"), held_out("test"), run.also(), subgroups)

    @property
    def can_reveal(self) -> bool:
        """Whether held-out rows have x*, which an oracle needs."""
        run = self.for_run(self.n_rows, 0).fitted
        return all(run.has_xstar(part).any() for part in ("val", "test"))

    @property
    def fitted(self) -> RunRows:
        """Rows of the run; an error before `for_run`, as shapes may depend on training rows."""
        if self.run is None:
            raise RuntimeError("rows are encoded for a run: call for_run(size, seed) first")
        return self.run

    def network(self) -> nn.Module:
        """Build the student with new random weights."""
        return self.fitted.network()

    def example(self) -> Inputs:
        """Return two rows of x, from which shapes inside a network are found."""
        return self.fitted.example()

    def example_loss(self, output: Tensor, y: Tensor) -> Tensor:
        """Return the loss of each row, (B,): the sum over targets if it has several (words)."""
        return self.outcome.example_loss(output, y)


@dataclass(frozen=True, slots=True)
class TaskKind:
    """A kind of task: its settings, those of its networks, and what loads it."""

    Settings: Any
    """A subclass of `TaskSettings`."""
    Network: Any
    """A subclass of `Settings`."""
    load: Callable[[Any, Any], Task]

    def __call__(self, settings: Any, network: Any) -> Task:
        """Load a task."""
        return self.load(settings, network)
