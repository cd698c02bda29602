"""MIML-FCN+: a second network predicts the loss of an example (its slack) from x*.

    loss = mean of l + weight * mean of (l - slack(x*))^2,   l: the cross-entropy of an example

Examples with a higher loss than predicted weigh more, examples with a lower loss weigh less: the
gradient of l is multiplied by 1 + 2 * weight * (l - slack).

Yang, Zhou, Cai, Ong: "MIML-FCN+: Multi-instance Multi-label Learning via Fully Convolutional
Networks with Privileged Information", CVPR 2017; one label and shared convolutions as in Lambert,
Sener, Savarese, CVPR 2018. Deviations: the slack network fits the losses at full weight (with a
gradient multiplied by 1e-8 it would not learn), and does not train the convolutions.
"""

from typing import ClassVar

from pydantic import Field
from torch import nn
from torch.nn import functional as F

from lupi.core import Batch, Losses, Method, RowLoss, Task
from lupi.methods.students import Trunk, XstarVectors, head_like
from lupi.search import Range, Space
from lupi.settings import Settings


class MimlFcnSettings(Settings):
    """Settings of MIML-FCN+."""

    weight: float = Field(0.1, ge=0)
    """Weight of the squared distance between loss and slack in the student's loss. The CVPR 2018
    paper uses 1e-8."""


class MimlFcn(Method):
    """Train with losses pulled towards those predicted from x*."""

    name = "miml-fcn"
    summary = "a second network predicts each example's loss from x*"
    uses_xstar = True
    output_kinds = ("classes",)  # the slack is never negative, so the loss must not be negative
    Settings = MimlFcnSettings
    search: ClassVar[Space] = {
        "settings.weight": Range(low=0.01, high=0.5, log=True),
        **Method.search,
    }

    def __init__(self, net: nn.Module, task: Task, settings: MimlFcnSettings) -> None:
        super().__init__(net, task, settings)
        self.xstar = XstarVectors(task, lambda: Trunk(net, task.example(), self.name))
        self.slack = head_like(net, task.example(), self.xstar.n, 1)

    def loss(self, batch: Batch) -> Losses:
        """Return the task's loss, its distance from the slack, and the fit of the slack."""
        output = self.net(batch.x)
        each = self.task.example_loss(output, batch.y)  # (B,)
        has = batch.privileged()[1]
        distance = fit = each.new_zeros(0)
        if has.any():
            slack = F.softplus(self.slack(self.xstar(batch, has)[has])).squeeze(1)  # never negative
            distance = (each[has] - slack.detach()).square()
            fit = (each[has].detach() - slack).square()
        return {
            "task": RowLoss(each),
            "slack": RowLoss(distance, self.settings.weight, only_xstar=True),
            "fit": RowLoss(fit, only_xstar=True),
        }
