"""What a method is: a loss over a student, in stages."""

import contextlib
import copy
import hashlib
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from lupi.core.batch import Batch, Inputs, Losses, RowLoss
from lupi.core.task import (
    OutputKind,
    Places,
    Task,
    XstarKind,
)
from lupi.search import Range, Space
from lupi.settings import Settings


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
    classical: ClassVar[bool] = False
    """True for models without a network, which are no methods."""
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
        self.n_rows: int | None = None
        """Training rows of the run; training sets it."""
        self.stage: str | None = None
        """Name of the stage that training is in; outside of training it is as in the last one."""

    @abstractmethod
    def loss(self, batch: Batch) -> Losses:
        """Return what to minimise on a training batch in the current stage."""

    @classmethod
    def searched(cls, settings: Mapping[str, Any]) -> Space:
        """Return the part of `search` that has an effect on an arm with these settings."""
        return cls.search

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


def seed_torch(seed: int) -> None:
    """Seed torch's own generators: of the CPU, and of every device that is there."""
    if torch.accelerator.is_available():
        torch.manual_seed(seed)
    else:  # spare the note that torch takes for devices of later
        torch.default_generator.manual_seed(seed)
