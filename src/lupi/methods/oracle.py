"""The oracle: a model that also sees x* at test time. It shows how much x* could help at best.

    f(x, x*) = h(x) + g(x, x*)

It is a reference, not a competitor: records, tables and reports mark it, and it never gives the
verdict that x* helps. h is the student's network. For a region, g is a second network that sees the
blacked-out image, or only the words of the rationale. For a vector, g is a hidden layer on h's last
features and x*. In translation, x* changes the first state of the decoder instead (Calixto, Liu,
Campbell, EMNLP 2017).
"""

from typing import Protocol, cast

import torch
from pydantic import Field
from torch import Tensor, nn

from lupi.core import Batch, Losses, Method, Task
from lupi.errors import LupiError
from lupi.loaders.xstar.regions import restrict
from lupi.methods.students import try_pass
from lupi.noise.sites import layer_inputs, linear_layers
from lupi.settings import Settings


class OracleSettings(Settings):
    """Settings of the network on x*."""

    n_hidden: int = Field(64, ge=1)
    """Units of the hidden layer that combines x* with the features, if x* is a vector; not used
    in translation."""


class _SeesVector(Protocol):
    """A network for tokens, which knows how a vector changes it."""

    def with_vector(self, n_vector: int) -> nn.Module:
        """Return this network, with a vector as second input."""
        ...


class OracleNetwork(nn.Module):
    """Predict from x with x* appended to its channels (`loaders/xstar/reveal.py`)."""

    def __init__(self, net: nn.Module, task: Task, n_hidden: int) -> None:
        super().__init__()
        self.net = net
        self.is_region = task.xstar_kind == "region"
        self.n_channels = (task.example().shape[1], task.xstar_dim, 1)
        self.xstar_net: nn.Module
        if self.is_region:
            self.xstar_net = task.network()
        else:
            with layer_inputs(linear_layers(net)[-1]) as seen:
                try_pass(net, task.example())
            self.xstar_net = nn.Sequential(
                nn.Linear(seen[0].shape[-1] + task.xstar_dim, n_hidden),
                nn.ReLU(),
                nn.Linear(n_hidden, task.n_outputs),
            )

    def forward(self, x: Tensor | tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """Map (B, C + D + 1, ...) to outputs; texts: words, rationale, whether there is one."""
        if isinstance(x, tuple):
            words, region, has_region = x
            # Without a rationale, the network sees the whole text.
            rationale = restrict(words, region.where(has_region[:, None, None], 1.0))
            return torch.add(self.net(words), self.xstar_net(rationale))
        if x.shape[1] != sum(self.n_channels):
            raise LupiError(
                f"an oracle predicts from x and x* together: expected {sum(self.n_channels)} "
                f"channels, got {x.shape[1]}; to predict from x alone, train another method"
            )
        plain, xstar, has = x.split(self.n_channels, dim=1)
        if self.is_region:
            # Without a region, the network sees the whole image.
            shown = restrict(plain, xstar.where(has > 0, 1.0))
            return torch.add(self.net(plain), self.xstar_net(shown))
        with layer_inputs(linear_layers(self.net)[-1]) as seen:
            own = self.net(plain)
        xstar, has = _per_row(xstar), _per_row(has)
        return torch.add(own, has * self.xstar_net(torch.cat([seen[0], xstar], 1)))


def _per_row(values: Tensor) -> Tensor:
    """Return the (B, D) values that `append_xstar` repeated at each place of an image."""
    return values.flatten(2)[..., 0] if values.dim() > 2 else values


class Oracle(Method):
    """Train, validate and test on x and x*."""

    name = "oracle"
    summary = "also sees x* at test time: a reference, not a competitor"
    uses_xstar = True
    output_kinds = ("classes", "gaussian", "tokens")
    sees_xstar_at_test = True
    extends_student = True
    Settings = OracleSettings

    def __init__(self, net: nn.Module, task: Task, settings: OracleSettings) -> None:
        whole = (
            cast(_SeesVector, net).with_vector(task.xstar_dim)
            if task.output_kind == "tokens"
            else OracleNetwork(net, task, settings.n_hidden)
        )
        super().__init__(whole, task, settings)

    def loss(self, batch: Batch) -> Losses:
        """Return the task's loss; x has x* appended."""
        return {"task": self.task_loss(self.net(batch.x), batch)}
