"""Information dropout: the network sets the noise at its layers from x, without x*.

    z = h * exp(alpha(h) * eps),   eps ~ N(0, 1),   0 < alpha <= alpha_max
    loss = cross-entropy + beta / n_train * sum over units of log(alpha_max / alpha)

The second term is the divergence of z from a log-uniform prior, up to a constant.

Achille, Soatto: "Information Dropout: Learning Optimal Representations Through Noisy
Computation", PAMI 2018. Deviation: alpha is a function of the layer's output h, so that it can be
attached to any site; the paper uses the layer's input.
"""

from functools import partial
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from lupi.core import Batch, Losses, Method, RowLoss, Task
from lupi.noise.sites import attached, site_shapes, sites_for_noise
from lupi.search import Range, Space
from lupi.settings import Settings

ALPHA_MIN = 0.001
"""Minimum of alpha, which keeps the divergence finite; the authors' value."""


class InfoDropoutSettings(Settings):
    """Sites, maximum strength and penalty of the noise."""

    sites: tuple[str, ...] | None = None
    """Names or patterns, such as `trunk.site2` or `head.*`; by default every dropout layer."""
    beta: float = Field(3.0, ge=0)
    """Weight of the divergence."""
    alpha_max: float = Field(0.3, gt=0, le=5)
    """Maximum standard deviation of log z."""


class InfoDropout(Method):
    """Train under noise whose strength is learned from x."""

    name = "info-dropout"
    summary = "noise whose strength is learned from x, no x*"
    uses_xstar = False
    Settings = InfoDropoutSettings
    search: ClassVar[Space] = {
        "settings.beta": Range(low=0.1, high=30, log=True),
        "settings.alpha_max": Range(low=0.1, high=1),
    }

    def __init__(self, net: nn.Module, task: Task, settings: InfoDropoutSettings) -> None:
        super().__init__(net, task, settings)
        self._sites = sites_for_noise(net, settings.sites)
        shapes = site_shapes(net, self._sites, task.example())
        self._indices = {name: i for i, name in enumerate(self._sites)}
        self.alphas = nn.ModuleList(_alpha_network(shapes[name].shape) for name in self._sites)

    def loss(self, batch: Batch) -> Losses:
        """Return the task's loss under noise, plus the weighted divergence."""
        divergences: list[Tensor] = []
        noises = {name: partial(self._noise, name, divergences) for name in self._sites}
        with attached(self._sites, noises):
            output = self.net(batch.x)
        weight = self.settings.beta / self._n_rows(batch)
        divergence = RowLoss(torch.stack(divergences).sum(0), weight)
        return {"task": self.task_loss(output, batch), "divergence": divergence}

    def _n_rows(self, batch: Batch) -> int:
        """Return the number of training rows, which divides the divergence."""
        return self.n_rows or len(batch.y)

    def _noise(self, name: str, divergences: list[Tensor], h: Tensor) -> Tensor:
        """Return h with noise; append the site's divergence (B,), a sum over units, to the list."""
        largest = self.settings.alpha_max
        alpha = ALPHA_MIN + largest * torch.sigmoid(self.alphas[self._indices[name]](h))
        # 0 at the maximum noise
        units = -torch.log(alpha / (ALPHA_MIN + largest))
        divergences.append(units.flatten(1).sum(1))
        return h * torch.exp(alpha * torch.randn_like(h))


def _alpha_network(shape: torch.Size) -> nn.Module:
    if len(shape) == 3:
        return nn.Conv2d(shape[0], shape[0], 3, padding=1)
    return nn.Linear(shape[-1], shape[-1])
