"""Self-distillation: generalised distillation whose teacher sees x. Is it only soft labels?

    s = softmax(f'(x) / T),   loss = (1 - lambda) * CE(y, f(x)) + lambda * CE(s, f(x))

The control of `distillation`: the same loss and stages, a teacher that is another network like
the student, with its own initial weights. Hinton, Vinyals, Dean: "Distilling the Knowledge in a
Neural Network", 2015; Furlanello et al.: "Born-Again Neural Networks", ICML 2018.
"""

from typing import ClassVar

import torch
from pydantic import Field
from torch import nn

from lupi.core import Batch, Losses, Method, RowLoss, Stage, Task
from lupi.nn.soft_labels import SoftReading, count_outputs, imitation_loss
from lupi.search import Range, Space
from lupi.settings import Settings


class SelfDistillationSettings(Settings):
    """As in `distillation`: give both arms the same."""

    temperature: float = Field(1.0, gt=0, le=1000)
    """T: the higher, the softer the teacher's labels."""
    imitation: float = Field(1.0, ge=0, le=1)
    """lambda: 0 learns from the labels alone, 1 from the teacher alone."""
    reading: SoftReading = "paper"
    """`official`: the soft part times T^2; `hinton` also has the student at temperature T."""
    teacher_epochs: int | None = Field(None, ge=1)
    """Of the teacher; by default as many as the run's."""
    teacher_lr: float | None = Field(None, gt=0, le=100)
    """Learning rate of the teacher; by default the run's."""


class SelfDistillation(Method):
    """Train a teacher on x, then the student on labels and on what the teacher says."""

    name = "self-distillation"
    summary = "control of distillation: the teacher sees x, not x*"
    uses_xstar = False
    Settings = SelfDistillationSettings
    search: ClassVar[Space] = {
        "settings.temperature": (1, 2, 5, 10, 20, 50),
        "settings.imitation": Range(low=0, high=1),
        **Method.search,
    }

    def __init__(self, net: nn.Module, task: Task, settings: SelfDistillationSettings) -> None:
        super().__init__(net, task, settings)
        count_outputs(net, task.example(), task.output_kind)
        self.teacher = task.network()

    def stages(self) -> tuple[Stage, ...]:
        """Return the teacher's stage and the student's."""
        changes = {"epochs": self.settings.teacher_epochs, "lr": self.settings.teacher_lr}
        train = {key: value for key, value in changes.items() if value is not None}
        teacher = Stage("teacher", learns=(self.teacher,), validates=False, train=train)
        return teacher, Stage(learns=(self.net,))

    def loss(self, batch: Batch) -> Losses:
        """Return the teacher's loss, or the student's."""
        if self.stage == "teacher":
            return Losses({"teacher": self.task_loss(self.teacher(batch.x), batch)})
        with torch.no_grad():
            advice = self.teacher.eval()(batch.x)
        output, weight = self.net(batch.x), self.settings.imitation
        hard = self.task.example_loss(output, batch.y)
        s, kind = self.settings, self.task.output_kind
        soft = imitation_loss(output, advice, s.temperature, s.reading, kind)
        return Losses({"task": RowLoss(hard, 1 - weight), "imitation": RowLoss(soft, weight)})
