"""Gaussian dropout: multiplicative noise of one fixed variance. Answers: is it only noise?

    z = h * (1 + sqrt(variance) * eps),   eps ~ N(0, 1)

Srivastava et al.: "Dropout", JMLR 2014, section 10. The paper's baseline has variance 1.
"""

import math
from functools import partial
from typing import ClassVar

import torch
from pydantic import Field
from torch import nn

from lupi.core import Batch, Losses, Method, Task
from lupi.nn.noise import multiplicative_noise
from lupi.nn.sites import Attachment, find_sites
from lupi.search import Range, Space
from lupi.settings import Settings


class GaussianDropoutSettings(Settings):
    """Where the noise enters and how strong it is."""

    sites: tuple[str, ...] | None = None
    """Names or patterns, such as `trunk.site2` or `head.*`; by default every dropout layer."""
    variance: float = Field(1.0, gt=0, le=50)
    shared_dims: tuple[int, ...] | None = None
    """Dimensions that share one draw; 0 is the batch. By default time, at sites of a sequence."""


class GaussianDropout(Method):
    """Train on x and y under noise of a fixed variance."""

    name = "gaussian-dropout"
    summary = "noise of one fixed variance at the sites, no x*"
    uses_xstar = False
    output_kinds = ("classes", "gaussian", "tokens")
    Settings = GaussianDropoutSettings
    search: ClassVar[Space] = {"settings.variance": Range(low=0.1, high=4, log=True)}

    def __init__(self, net: nn.Module, task: Task, settings: GaussianDropoutSettings) -> None:
        super().__init__(net, task, settings)
        sites = find_sites(net, settings.sites)
        noise = partial(
            multiplicative_noise,
            logvar=torch.tensor(math.log(settings.variance)),
            shared_dims=settings.shared_dims,
        )
        self._attachment = Attachment(sites, dict.fromkeys(sites, noise))

    def loss(self, batch: Batch) -> Losses:
        """Return the task's loss under noise."""
        return Losses({"task": self.task_loss(self.net(batch.x), batch)})

    def student(self) -> nn.Module:
        """Return a plain copy of the student, without noise."""
        with self._attachment.detached():
            return super().student()
