"""TRAM: a head that sees x* trains the features; the student's last layer is fitted to them.

    min over phi, pi:  CE(y, pi(phi(x), x*)),      min over psi:  CE(y, psi(stop(phi(x))))

Collier, Jenatton, Kokiopoulou, Berent: "Transfer and marginalize: explaining away label noise
with privileged information", ICML 2022. psi passes no gradient to phi, and fits the labels averaged
over x*. The head pi is that of the authors' public code. Deviations: for a row without x*, the
embedding of x* is zero; for a region, pi sees phi of the blacked-out image.

With `random_dim`, pi also sees a fixed random vector for each row, which allows it to memorise
wrong labels so that phi does not have to. Ortiz-Jimenez, Collier, Nawalgaria, D'Amour, Berent,
Jenatton, Kokiopoulou: "When does privileged information explain away label noise?", ICML 2023.
"""

import torch
from pydantic import Field
from torch import Tensor, nn

from lupi.core import Batch, Losses, Method, Task
from lupi.methods.by_row import RandomVectors
from lupi.methods.students import Head, XstarVectors
from lupi.noise.sites import layer_inputs
from lupi.settings import Settings


class TramSettings(Settings):
    """Settings of the head that sees x*, and where the network is split."""

    head: str | None = None
    """The part of the student that passes no gradient to the features; by default its last
    linear layer."""
    n_hidden: int = Field(1024, ge=1)
    """Units of both hidden layers of the head that sees x*."""
    random_dim: int = Field(0, ge=0, le=4096)
    """Length of a fixed random vector for each row, an additional input of that head."""


class JointHead(nn.Module):
    """pi: predict from features (B, F) and x* (B, D)."""

    def __init__(self, n_features: int, n_xstar: int, n_hidden: int, n_outputs: int) -> None:
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(n_xstar, n_hidden), nn.ReLU())
        self.join = nn.Sequential(nn.Linear(n_features + n_hidden, n_hidden), nn.ReLU())
        self.out = nn.Linear(n_features + n_hidden, n_outputs)

    def forward(self, features: Tensor, xstar: Tensor, has: Tensor) -> Tensor:
        """Return (B, n_outputs); rows without x* have an embedding of zeros."""
        embedding = self.embed(xstar) * has[:, None]
        joint = self.join(torch.cat([features, embedding], 1))
        output: Tensor = self.out(torch.cat([features, joint], 1))
        return output


class Tram(Method):
    """Train features with x*, and the student's last layer on them without x*."""

    name = "tram"
    summary = "features are trained through a head that sees x* (ICML 2022)"
    uses_xstar = True
    Settings = TramSettings

    def __init__(self, net: nn.Module, task: Task, settings: TramSettings) -> None:
        super().__init__(net, task, settings)
        self.head = Head(net, task.example(), settings.head, self.name)
        self.xstar = XstarVectors(task, lambda: self.head)
        n_xstar = self.xstar.n + settings.random_dim
        self.joint = JointHead(self.head.n_features, n_xstar, settings.n_hidden, task.n_outputs)
        self.random = RandomVectors(settings.random_dim)

    def loss(self, batch: Batch) -> Losses:
        """Return the losses of the head that sees x* and of the student's own head."""
        has = batch.privileged()[1]
        xstar = self.random.append_to(self.xstar(batch, has), batch)
        with layer_inputs(self.head.part, cut=True) as phi:
            output = self.net(batch.x)
        joint = self.joint(phi[0], xstar, has)
        return {"task": self.task_loss(output, batch), "xstar": self.task_loss(joint, batch)}
