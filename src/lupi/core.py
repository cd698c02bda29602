"""The vocabulary everyone shares: what a batch, a split, a task and a method are.

x is what a network sees at any time, x* (`xstar`) what exists in training only, y the target.
"""

import contextlib
import copy
import hashlib
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Generator, Tensor, nn

from lupi.errors import LupiError
from lupi.records import Metric
from lupi.search import Range, Space
from lupi.settings import Settings
from lupi.whole_batch import WHOLE, WholeBatch

XstarKind = Literal["region", "vector"]
"""region: a map over the places of x in [0, 1], 1 on what matters: (B, 1, H, W) over the pixels of
a image, (B, 1, T) over the words of a text; vector: (B, D)."""

Places = Literal["pixels", "words"]
"""What x consists of where x* is a region: pixels (B, C, H, W), or words (B, T) with 0 for none."""

OutputKind = Literal["classes", "gaussian", "tokens"]
"""classes: logits (B, K); gaussian: mean and log-variance of a number, (B, 2); tokens: logits of
each word of a sequence (B, T, K), T of each batch's own (the task is a `SequenceTask`)."""

Inputs = Any
"""What a network sees: a tensor (B, ...), or a named tuple of tensors with B rows each."""

Control = Literal["real", "shuffled", "constant", "random", "lexicon"]
"""What a training row's x* is: its own, another row's, the mean, or a random draw; of texts also
the words of a list."""


class Batch(NamedTuple):
    """Rows of one split. Validation and test rows carry no x*: `xstar` is None there."""

    x: Inputs
    y: Tensor
    xstar: Tensor | None = None
    has_xstar: Tensor | None = None
    """(B,) bool, True where the row carries x*; never None where `xstar` is given."""
    n_targets: int | None = None
    """Targets in the whole batch where rows have several each, such as words; None: one each."""
    whole: WholeBatch = WHOLE
    """The batch that these rows are all of, or a part of: see `lupi.whole_batch`."""

    @property
    def n_rows(self) -> int:
        """Rows of the whole batch."""
        return self.whole.n_rows(len(self.y))

    def privileged(self) -> tuple[Tensor, Tensor]:
        """Return x*, and which rows (B,) have it; other rows of x* are zero.

        A row of x* that is not finite counts as missing.
        """
        if self.xstar is None or self.has_xstar is None:
            raise LupiError("the method trains on rows with x*; this split carries none")
        has = self.has_xstar & torch.isfinite(self.xstar).flatten(1).all(1)
        return self.xstar.where(has.view(-1, *[1] * (self.xstar.dim() - 1)), 0.0), has

    def select(self, rows: Tensor | slice) -> "Batch":
        """Return some rows: a slice, a mask (B,) or indices."""
        x = self.x
        if isinstance(x, tuple):
            make = getattr(x, "_make", tuple)  # of a named tuple
            x = make(part[rows] for part in x)
        else:
            x = x[rows]
        if self.xstar is None or self.has_xstar is None:
            return self._replace(x=x, y=self.y[rows])
        return self._replace(
            x=x, y=self.y[rows], xstar=self.xstar[rows], has_xstar=self.has_xstar[rows]
        )


class RowLoss(NamedTuple):
    """A loss of each row. Training minimises its mean over the batch, times `weight`."""

    values: Tensor
    """(n, ...), a value or several for each row; or their mean (), as PyTorch's losses return."""
    weight: float = 1.0
    only_xstar: bool = False
    """Whether the rows are those with x*; by default all."""
    n_targets: int | None = None
    """Where a value is a sum over targets, such as words: how many the whole batch has. The mean
    is then over targets."""


class Losses(NamedTuple):
    """What a method minimises: the sum of these, by name. `train/` reduces them."""

    rows: Mapping[str, RowLoss]
    batch: Mapping[str, Tensor] = {}
    """Losses that are no mean over rows, such as the length of all values of a batch as one
    vector: what the rows of this pass add to them (`Batch.whole`)."""


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


class Task(Protocol):
    """What the data mean: networks, loss per example and metrics. Knows no method."""

    metric: Metric
    xstar_kind: XstarKind
    xstar_dim: int
    """Channels of a region (1), or the length of a vector; 0: the data have no x*."""
    output_kind: OutputKind
    places: Places | None
    """What a region is a map over; None where x* is a vector."""

    def splits(
        self, size: int, seed: int, control: Control, xstar_frac: float, reveal: bool = False
    ) -> Splits:
        """Return `size` training rows, a fraction of them with x* under a control.

        With `reveal`, which is for an oracle only, validation and test rows carry x* too.
        """
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

    def metrics(self, output: Tensor, y: Tensor) -> dict[str, float]:
        """Score a whole split."""
        ...

    def trivial(self, train: Split, test: Split) -> dict[str, float]:
        """Score the best predictor that ignores x."""
        ...

    def is_uninformative(self, output: Tensor) -> bool:
        """Tell whether the outputs are the same whatever x is (uniform logits)."""
        ...


class Generated(NamedTuple):
    """What a student wrote for a split, and how good that is."""

    lines: list[str]
    scores: dict[str, float]
    signatures: dict[str, str]
    """How each score was computed, as others write it."""


@runtime_checkable
class SequenceTask(Protocol):
    """What a task adds whose outputs are sequences (B, T, ...), of another T in each batch."""

    def condense(self, output: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return what metrics need of a batch's outputs and targets, (B, ...) whatever T is."""
        ...

    def generate(self, net: nn.Module, split: Split, part: Literal["val", "test"]) -> Generated:
        """Search for the best outputs of a split and score them: once, after training."""
        ...

    def save(self, folder: Path) -> None:
        """Write what it takes to use the student where the data are not."""
        ...


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of training with a loss of its own. Most methods have one: the student's."""

    name: str = "student"
    learns: tuple[nn.Module, ...] | None = None
    """The modules whose weights change; by default all that the method has."""
    validates: bool = True
    """Whether scores of the student mean anything here: no best epoch and no adaptive schedule
    otherwise."""
    train: Mapping[str, Any] = field(default_factory=dict)
    """What is other than in the run's training settings, such as `epochs` or `lr`."""


class Method(nn.Module):
    """How x* takes part in training: a loss over a student, plus helper networks of its own.

    Calling a method is its loss, so that wrappers (data parallel, precision) see one forward.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    uses_xstar: ClassVar[bool]
    sees_xstar_at_test: ClassVar[bool] = False
    """True for an oracle only: its x has x* appended, in every split."""
    extends_student: ClassVar[bool] = False
    """Whether what predicts is more than the task's network."""
    kinds: ClassVar[tuple[XstarKind, ...]] = ("region", "vector")
    """The kinds of x* it can use."""
    places: ClassVar[tuple[Places, ...]] = ("pixels", "words")
    """What a region may be a map over."""
    output_kinds: ClassVar[tuple[OutputKind, ...]] = ("classes", "gaussian")
    """The kinds of output it can train."""
    Settings: ClassVar[type[Settings]]
    search: ClassVar[Space] = {"network.dropout": Range(low=0, high=0.5)}
    """Where tuning looks for better settings than the arm's own."""

    def __init__(self, net: nn.Module, task: Task, settings: Any) -> None:
        """Take a student; subclasses declare `settings` as their own `Settings`."""
        super().__init__()
        self.net = net
        self.task = task
        self.settings = settings
        self.stage: str | None = None
        """Name of the stage that training is in; outside of training it is as in the last one."""

    @abstractmethod
    def loss(self, batch: Batch) -> Losses:
        """Return what to minimise on a training batch in the current stage."""

    def stages(self) -> tuple[Stage, ...]:
        """Return the parts of training in their order; the student is done after the last."""
        return (Stage(),)

    @contextlib.contextmanager
    def during(self, stage: Stage) -> Iterator[None]:
        """Be in a stage: the loss is that stage's, and only what it names learns."""
        learning = set(self.parameters())
        if stage.learns is not None:
            learning = {weight for module in stage.learns for weight in module.parameters()}
        resting = [w for w in self.parameters() if w.requires_grad and w not in learning]
        self.stage = stage.name
        for weight in resting:
            weight.requires_grad_(False)
        try:
            yield
        finally:
            self.stage = None
            for weight in resting:
                weight.requires_grad_(True)

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Return the weights in groups for the optimizer.

        A group may have options of the optimizer, and an `lr_factor` of the learning rate.
        """
        return [{"params": list(self.parameters())}]

    def start_epoch(self, epoch: int) -> None:
        """Prepare for an epoch of the current stage, counted from 1."""

    def forward(self, batch: Batch) -> Losses:
        """Return the loss: see `loss`."""
        return self.loss(batch)

    def task_loss(self, output: Tensor, batch: Batch) -> RowLoss:
        """Return the task's loss of each row."""
        return RowLoss(self.task.example_loss(output, batch.y), n_targets=batch.n_targets)

    def predict(self, x: Inputs) -> Tensor:
        """Return the student's output. x* can't be passed: no leak by construction."""
        output: Tensor = self.net(x)
        return output

    def logvars(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return the log-variance h*(x*) at each noise site, (B, ...); empty without noise."""
        return {}

    def student(self) -> nn.Module:
        """Return a plain copy of the student, with no trace of the method."""
        return copy.deepcopy(self.net)


def derive_seed(seed: int, *purpose: Any) -> int:
    """Return a seed for one purpose, so that no two uses of randomness share a stream."""
    text = ":".join(str(part) for part in (seed, *purpose))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1
