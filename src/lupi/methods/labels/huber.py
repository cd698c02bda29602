"""Huber's loss: large errors count no more than moderate ones. A baseline without x*.

    rho(e) = e^2 / 2 if |e| <= delta, else delta * (|e| - delta / 2),   e = y - m(x)

Huber: "Robust estimation of a location parameter", Annals of Mathematical Statistics 1964. The
student's log-variance is fitted separately.
"""

from typing import ClassVar

from pydantic import Field
from torch.nn import functional as F

from lupi.core import Batch, Losses, Method, RowLoss
from lupi.core.gaussian import moments, variance_loss
from lupi.search import Range, Space
from lupi.settings import Settings


class HuberSettings(Settings):
    """Settings of Huber's loss."""

    delta: float = Field(1.0, gt=0)
    """Error above which the loss is linear, in standard deviations of the target."""


class Huber(Method):
    """Train on x and y with a loss that is linear in large errors."""

    name = "huber"
    summary = "no x*: a loss that is linear in large errors, for numbers"
    uses_xstar = False
    output_kinds = ("gaussian",)
    Settings = HuberSettings
    search: ClassVar[Space] = {
        "settings.delta": Range(low=0.1, high=2, log=True),
        **Method.search,
    }

    def loss(self, batch: Batch) -> Losses:
        """Return Huber's loss of the mean, and the fit of the variance."""
        output = self.net(batch.x)
        mean, _ = moments(output)
        error = F.huber_loss(mean, batch.y, reduction="none", delta=self.settings.delta)
        return {"task": RowLoss(error), "variance": RowLoss(variance_loss(output, batch.y))}
