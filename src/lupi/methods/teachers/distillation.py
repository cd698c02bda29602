"""Distillation: a teacher is trained first, then the student on labels and soft labels.

    s = softmax(teacher / T),   loss = (1 - lambda) * CE(y, f(x)) + lambda * CE(s, f(x))

The teacher of `distillation` sees only x*: Lopez-Paz, Bottou, Schölkopf, Vapnik: "Unifying
distillation and privileged information", ICLR 2016. The paper's text uses T = lambda = 1 and tries
several values on MNIST. Additions: if x* is a region, the teacher is a network like the student
that sees x restricted to it; in regression, the teacher predicts a normal distribution (the paper's
SARCOS: a number).

The teacher of `self-distillation` sees x. It is a control for the effect of soft labels: the same
loss and stages, and a network like the student with its own initial weights. Hinton, Vinyals, Dean:
"Distilling the Knowledge in a Neural Network", 2015; Furlanello et al.: "Born-Again Neural
Networks", ICML 2018.
"""

from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from lupi.core import Batch, Inputs, Losses, Method, OutputKind, RowLoss, Stage, Task
from lupi.core.gaussian import gaussian_cross_entropy, moments
from lupi.methods.students import xstar_input, xstar_network
from lupi.search import Range, Space
from lupi.settings import Settings


class SelfDistillationSettings(Settings):
    """Settings of the teacher and the loss. Use the same for distillation and its control."""

    temperature: float = Field(1.0, gt=0, le=1000)
    """T: the higher, the softer the teacher's labels."""
    imitation: float = Field(1.0, ge=0, le=1)
    """lambda: 0 uses only the labels, 1 only the teacher."""
    teacher_epochs: int | None = Field(None, ge=1)
    """Epochs of the teacher; by default the run's."""
    teacher_lr: float | None = Field(None, gt=0, le=100)
    """Learning rate of the teacher; by default the run's."""


class DistillationSettings(SelfDistillationSettings):
    """Settings of the teacher and the loss."""

    n_hidden: int = Field(64, ge=1)
    """Units of the teacher's hidden layer if x* is a vector."""


class Distillation(Method):
    """Train a teacher on x*, then the student on labels and the teacher's predictions."""

    name = "distillation"
    summary = "a teacher that sees only x* provides soft labels (ICLR 2016)"
    uses_xstar = True
    Settings: ClassVar[type[SelfDistillationSettings]] = DistillationSettings
    search: ClassVar[Space] = {
        "settings.temperature": (1, 2, 5, 10, 20, 50),
        "settings.imitation": Range(low=0, high=1),
        **Method.search,
    }

    def __init__(self, net: nn.Module, task: Task, settings: SelfDistillationSettings) -> None:
        super().__init__(net, task, settings)
        self.teacher = self._new_teacher(task)

    def _new_teacher(self, task: Task) -> nn.Module:
        return xstar_network(task, self.settings.n_hidden)

    def _shown(self, batch: Batch) -> tuple[Inputs, Tensor]:
        """Return what the teacher sees, and the rows (B,) that have it."""
        return xstar_input(self.task, batch)

    def stages(self) -> tuple[Stage, ...]:
        """Return the teacher's stage and the student's."""
        changes = {"epochs": self.settings.teacher_epochs, "lr": self.settings.teacher_lr}
        train = {key: value for key, value in changes.items() if value is not None}
        teacher = Stage("teacher", learns=(self.teacher,), validates=False, train=train)
        return teacher, Stage(learns=(self.net,))

    def loss(self, batch: Batch) -> Losses:
        """Return the teacher's loss on the rows it knows, or the student's on all rows."""
        seen, has = self._shown(batch)
        if self.stage == "teacher":
            each = batch.y.new_zeros(0, dtype=torch.float32)
            if has.any():
                each = self.task.example_loss(self.teacher(seen[has]), batch.y[has])
            return {"teacher": RowLoss(each, only_xstar=self.uses_xstar)}
        with torch.no_grad():
            advice = self.teacher.eval()(seen)
        output, s = self.net(batch.x), self.settings
        hard = self.task.example_loss(output, batch.y)
        soft = imitation_loss(output, advice, s.temperature, self.task.output_kind)
        weight = s.imitation * has  # a row without x* uses only its label
        return {"task": RowLoss((1 - weight) * hard), "imitation": RowLoss(weight * soft)}


class SelfDistillation(Distillation):
    """Train a teacher on x, then the student on labels and the teacher's predictions."""

    name = "self-distillation"
    summary = "control for distillation: the teacher sees x instead of x*"
    uses_xstar = False
    Settings = SelfDistillationSettings

    def _new_teacher(self, task: Task) -> nn.Module:
        return task.network()

    def _shown(self, batch: Batch) -> tuple[Inputs, Tensor]:
        return batch.x, torch.ones_like(batch.y, dtype=torch.bool)


def imitation_loss(
    student: Tensor, teacher: Tensor, temperature: float, kind: OutputKind = "classes"
) -> Tensor:
    """Return the cross-entropy of each row (B,) with the teacher's soft labels."""
    if kind == "gaussian":
        mean, logvar = moments(teacher)
        return gaussian_cross_entropy(student, mean, temperature * logvar.exp())
    soft = (teacher / temperature).softmax(1)  # (B, K)
    return -(soft * student.log_softmax(1)).sum(1)
