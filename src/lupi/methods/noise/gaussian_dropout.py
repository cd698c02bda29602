"""Gaussian dropout: multiplicative noise of one fixed variance. A control without x*.

    z = h * (1 + sqrt(variance) * eps),   eps ~ N(0, 1)

Srivastava et al.: "Dropout", JMLR 2014, section 10. The paper's baseline has variance 1. As a
control for het-dropout it should have the same sites, shared draws and a matched variance.
"""

import math
from functools import partial
from typing import ClassVar

import torch
from pydantic import Field
from torch import nn

from lupi.core import Batch, Losses, Method, Task
from lupi.noise.layer import Distribution, Draw, add_noise, check_draw
from lupi.noise.sites import attached, site_shapes, sites_for_noise
from lupi.search import Range, Space
from lupi.settings import Settings


class GaussianDropoutSettings(Settings):
    """Sites, variance and draws of the noise."""

    sites: tuple[str, ...] | None = None
    """Names or patterns, such as `trunk.site2` or `head.*`; by default every dropout layer."""
    variance: float = Field(1.0, gt=0, le=1000)
    """Variance of the noise."""
    draw: Draw | None = None
    """What shares a draw: `unit` (one draw per entry), `place`, `channel` or `example`; by
    default `channel` at feature maps and sequences, `unit` at vectors."""
    distribution: Distribution = "gaussian"
    """`bernoulli` drops all values that share a draw, at the rate with the same variance."""


class GaussianDropout(Method):
    """Train on x and y under noise of a fixed variance."""

    name = "gaussian-dropout"
    summary = "noise with one fixed variance at the sites, no x*"
    uses_xstar = False
    output_kinds = ("classes", "gaussian", "tokens")
    Settings = GaussianDropoutSettings
    search: ClassVar[Space] = {"settings.variance": Range(low=0.1, high=4, log=True)}

    def __init__(self, net: nn.Module, task: Task, settings: GaussianDropoutSettings) -> None:
        super().__init__(net, task, settings)
        self._sites = sites_for_noise(net, settings.sites)
        shapes = site_shapes(net, self._sites, task.example())
        check_draw(settings.draw, shapes)
        logvar = torch.tensor(math.log(settings.variance))
        self._noise = {
            name: partial(
                add_noise,
                logvar=logvar,
                layout=found.layout,
                draw=settings.draw,
                distribution=settings.distribution,
            )
            for name, found in shapes.items()
        }

    def loss(self, batch: Batch) -> Losses:
        """Return the task's loss under noise."""
        with attached(self._sites, self._noise):
            output = self.net(batch.x)
        return {"task": self.task_loss(output, batch)}
