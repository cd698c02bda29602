"""Label smoothing: labels are mixed with the uniform distribution. A baseline without x*.

    loss = (1 - smoothing) * CE(y, f(x)) + smoothing * mean over classes of CE(class, f(x))

Szegedy, Vanhoucke, Ioffe, Shlens, Wojna: "Rethinking the Inception architecture for computer
vision", CVPR 2016. For noisy labels: Lukasik et al., ICML 2020.
"""

from typing import ClassVar

from pydantic import Field

from lupi.core import Batch, Losses, Method, RowLoss
from lupi.search import Range, Space
from lupi.settings import Settings


class LabelSmoothingSettings(Settings):
    """Settings of label smoothing."""

    smoothing: float = Field(0.1, ge=0, lt=1)
    """Weight of the uniform distribution over classes."""


class LabelSmoothing(Method):
    """Train on x and smoothed labels."""

    name = "label-smoothing"
    summary = "no x*: labels are mixed with the uniform distribution"
    uses_xstar = False
    output_kinds = ("classes",)
    Settings = LabelSmoothingSettings
    search: ClassVar[Space] = {"settings.smoothing": Range(low=0, high=0.5), **Method.search}

    def loss(self, batch: Batch) -> Losses:
        """Return the loss of the labels, and of all classes."""
        output = self.net(batch.x)
        share = self.settings.smoothing
        label = self.task.example_loss(output, batch.y)
        every = -output.log_softmax(1).mean(1)
        return {"task": RowLoss(label, 1 - share), "smoothing": RowLoss(every, share)}
