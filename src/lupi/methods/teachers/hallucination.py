"""Modality hallucination: a second head on x imitates the hidden layer of a head on x*.

    loss = sum of CE(y, .) over r, h, d, (r + h) / 2, (r + d) / 2
           + gamma * || sigmoid(fc1 of h) - sigmoid(fc1 of d) ||^2

Hoffman, Gupta, Darrell: "Learning with Side Information through Modality Hallucination", CVPR 2016.
r (the student) and h (hallucination) see x, d sees x*; the prediction is (r + h) / 2. As in the
CVPR 2018 comparison, all three share the convolutions and are trained together from scratch, and
the hallucination loss compares the first fully connected layers. The value of gamma is our choice.
"""

from collections.abc import Callable
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from lupi.core import Batch, Losses, Method, RowLoss, Task
from lupi.methods.students import check_learned, xstar_input, xstar_network
from lupi.noise.batchnorm import untracked
from lupi.noise.sites import layer_outputs, linear_layers
from lupi.search import Range, Space
from lupi.settings import Settings


class HallucinationSettings(Settings):
    """Weight of the hallucination loss."""

    gamma: float = Field(10.0, ge=0)
    """Weight of the hallucination loss; the paper recommends about ten times any other loss."""


class HallucinationStudent(nn.Module):
    """The student with a second head: it predicts the mean of both."""

    def __init__(self, net: nn.Module, fresh: nn.Module) -> None:
        super().__init__()
        self.net = net
        self.shares_trunk = all(hasattr(net, part) for part in ("trunk", "head"))
        self.hallucination: nn.Module = fresh.get_submodule("head") if self.shares_trunk else fresh

    def heads(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the student's own output and the hallucination's."""
        if not self.shares_trunk:
            return self.net(x), self.hallucination(x)
        features = self.net.get_submodule("trunk")(x)
        return self.net.get_submodule("head")(features), self.hallucination(features)

    def forward(self, x: Tensor) -> Tensor:
        """Return the mean output."""
        own, imagined = self.heads(x)
        return (own + imagined) / 2


class Hallucination(Method):
    """Train three heads together; keep the two that see x."""

    name = "hallucination"
    summary = "a second head on x imitates a head on x* (CVPR 2016)"
    uses_xstar = True
    extends_student = True
    Settings = HallucinationSettings
    search: ClassVar[Space] = {
        "settings.gamma": Range(low=1, high=100, log=True),
        **Method.search,
    }
    net: HallucinationStudent

    def __init__(self, net: nn.Module, task: Task, settings: HallucinationSettings) -> None:
        super().__init__(net, task, settings)
        layers = linear_layers(self.net.hallucination)
        if len(layers) == 1 and not self.net.shares_trunk:
            check_learned(net, linear_layers(net)[0], task.example(), self.name)
        self._shares_trunk = self.net.shares_trunk and task.xstar_kind == "region"
        on_xstar = xstar_network(task, layers[0].out_features)
        self.xstar_head = on_xstar.get_submodule("head") if self._shares_trunk else on_xstar

    @classmethod
    def extend(
        cls, net: nn.Module, network: Callable[[], nn.Module], settings: HallucinationSettings
    ) -> HallucinationStudent:
        """Return the student with a second head."""
        return HallucinationStudent(net, network())

    def loss(self, batch: Batch) -> Losses:
        """Return five task losses and the hallucination loss, over all rows or those with x*."""
        seen, has = xstar_input(self.task, batch)
        with layer_outputs(linear_layers(self.net.hallucination)[0]) as imagined:
            own, hallucinated = self.net.heads(batch.x)
        of_x = self._losses(batch.y, own, hallucinated, (own + hallucinated) / 2)
        of_xstar = distance = own.new_zeros(0)
        if has.any():
            with layer_outputs(linear_layers(self.xstar_head)[0]) as real:
                output = self._output_of_xstar(seen[has])
            of_xstar = self._losses(batch.y[has], output, (own[has] + output) / 2)
            distance = self._distance(imagined[0][has], real[0])
        return {
            "task": RowLoss(of_x),
            "xstar": RowLoss(of_xstar, only_xstar=True),
            "hallucination": RowLoss(distance, self.settings.gamma, only_xstar=True),
        }

    def _losses(self, y: Tensor, *outputs: Tensor) -> Tensor:
        """Return the sum of the outputs' losses for each row."""
        return torch.stack([self.task.example_loss(output, y) for output in outputs]).sum(0)

    def _output_of_xstar(self, seen: Tensor) -> Tensor:
        """Return d(x*); batch norms of the shared convolutions do not record this pass."""
        if self._shares_trunk:
            trunk = self.net.net.get_submodule("trunk")
            with untracked(trunk):
                seen = trunk(seen)
        output: Tensor = self.xstar_head(seen)
        return output

    def _distance(self, imagined: Tensor, real: Tensor) -> Tensor:
        """Compare activations (n, units) after the ReLU."""
        target = self._target(real)
        return (imagined.relu().sigmoid() - target.relu().sigmoid()).square().sum(1)

    def _target(self, real: Tensor) -> Tensor:
        """Return what is imitated; as in the paper, x* gets no gradient."""
        return real.detach()
