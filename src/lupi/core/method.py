"""Methods: a loss over a student, minimised in stages."""

import contextlib
import copy
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from lupi.core.batch import Batch, Inputs, Losses, RowLoss
from lupi.core.outcomes import OutputKind
from lupi.core.task import Control, Places, Task, XstarKind
from lupi.search import Range, Space
from lupi.settings import Settings


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of training with its own loss. Most methods have one: the student's."""

    name: str = "student"
    learns: tuple[nn.Module, ...] | None = None
    """Modules to train; by default all modules of the method."""
    validates: bool = True
    """Whether the student is scored in this stage. If not, there is no best epoch and no adaptive
    schedule."""
    train: Mapping[str, Any] = field(default_factory=dict)
    """Changes to the training settings of the run, such as `epochs` or `lr`."""


class Method(nn.Module):
    """How x* takes part in training: a loss over a student, plus helper networks of its own."""

    name: ClassVar[str]
    summary: ClassVar[str]
    uses_xstar: ClassVar[bool]
    classical: ClassVar[bool] = False
    """True for classical models, which have no network."""
    sees_xstar_at_test: ClassVar[bool] = False
    """True for an oracle only: x* is appended to its x in every split."""
    extends_student: ClassVar[bool] = False
    """Whether the student is more than the task's network: what `extend` returns."""
    teaches_attention: ClassVar[bool] = False
    """Whether x* teaches where the student looks, so that a run collapsed if it looks elsewhere."""
    kinds: ClassVar[tuple[XstarKind, ...]] = ("region", "vector")
    """Kinds of x* that the method can use."""
    controls: ClassVar[tuple[Control, ...]] = ()
    """Controls that a comparison adds to an arm of this method unless the arm names its own."""
    places: ClassVar[tuple[Places, ...]] = ("pixels", "words")
    """What regions may be maps over."""
    output_kinds: ClassVar[tuple[OutputKind, ...]] = ("classes", "gaussian")
    """Kinds of output that the method can train."""
    Settings: ClassVar[type[Settings]]
    search: ClassVar[Space] = {"network.dropout": Range(low=0, high=0.5)}
    """Ranges in which tuning looks for settings."""

    def __init__(self, net: nn.Module, task: Task, settings: Any) -> None:
        """Wrap a student. Subclasses declare the type of `settings` as their own `Settings`."""
        super().__init__()
        self.net = self.extend(net, task.network, settings)
        self.task = task
        self.settings = settings
        self.n_rows: int | None = None
        """Number of training rows; set by training."""
        self.stage: str | None = None
        """Name of the current stage of training; None outside of training."""

    @abstractmethod
    def loss(self, batch: Batch) -> Losses:
        """Return the losses of a training batch in the current stage."""

    @classmethod
    def extend(cls, net: nn.Module, network: Callable[[], nn.Module], settings: Any) -> nn.Module:
        """Return the student: by default the task's network `net`, or one with more parts.

        Training, loading and export build a student by this function alone, so a method with a
        head of its own overrides it, and sets `extends_student`.

        Args:
            net: The task's network.
            network: Builds another one like it.
            settings: Settings of the method.
        """
        return net

    @classmethod
    def searched(cls, settings: Mapping[str, Any]) -> Space:
        """Return the ranges of `search` that have an effect with these settings."""
        return cls.search

    def stages(self) -> tuple[Stage, ...]:
        """Return the stages of training in their order."""
        return (Stage(),)

    @contextlib.contextmanager
    def during(self, stage: Stage) -> Iterator[None]:
        """Enter a stage: use its loss, and train only the modules that it names."""
        trained = set(self.parameters())
        if stage.learns is not None:
            trained = {weight for module in stage.learns for weight in module.parameters()}
        frozen = [w for w in self.parameters() if w.requires_grad and w not in trained]
        self.stage = stage.name
        for weight in frozen:
            weight.requires_grad_(False)
        try:
            yield
        finally:
            self.stage = None
            for weight in frozen:
                weight.requires_grad_(True)

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Return the weights in groups for the optimizer.

        A group may have its own `weight_decay`, and a factor of the learning rate, `lr_factor`.
        """
        student = set(self.net.parameters())
        groups = self.student_groups()
        groups[0]["params"] += [w for w in self.parameters() if w not in student]
        return groups

    def student_groups(self) -> list[dict[str, Any]]:
        """Return the student's weights in groups.

        Modules with an `lr_factor`, such as a pretrained part, have a group of their own.
        """
        slow: dict[float, list[nn.Parameter]] = {}
        for module in self.net.modules():
            if isinstance(factor := getattr(module, "lr_factor", None), float):
                slow.setdefault(factor, []).extend(module.parameters())
        apart = {weight for weights in slow.values() for weight in weights}
        rest = [weight for weight in self.net.parameters() if weight not in apart]
        return [
            {"params": rest},
            *({"params": weights, "lr_factor": factor} for factor, weights in slow.items()),
        ]

    def start_epoch(self, epoch: int) -> None:
        """Prepare for an epoch of the current stage; the first is 1."""

    def task_loss(self, output: Tensor, batch: Batch) -> RowLoss:
        """Return the task's loss of each row; if rows have several targets, per target."""
        each = self.task.example_loss(output, batch.y)
        if batch.n_targets is not None:  # so that the mean over rows is that over targets
            each = each * (len(batch.y) / batch.n_targets)
        return RowLoss(each)

    def predict(self, x: Inputs) -> Tensor:
        """Return the student's output for x. There is no argument for x*, so it can't leak."""
        output: Tensor = self.net(x)
        return output

    def logvars(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return the log-variance h*(x*) at each noise site, (B, ...); empty without noise."""
        return {}

    def student(self) -> nn.Module:
        """Return a copy of the student, without any part of the method."""
        return copy.deepcopy(self.net)


def seed_torch(seed: int) -> None:
    """Seed torch's own generators: of the CPU, and of every device that is there."""
    if torch.accelerator.is_available():
        torch.manual_seed(seed)
    else:  # torch.manual_seed would queue a seed for devices that do not exist
        torch.default_generator.manual_seed(seed)
