"""Contrast examples: removing the region from x must make the label less likely by a margin.

    m(x) = log p(y | x) - log p(not y | x)
    loss = cross-entropy(f(x), y) + weight * max(0, 1 - (m(x) - m(x without the region)) / mu)

Zaidan, Eisner, Piatko: "Using
'Annotator Rationales' to Improve Machine Learning for Text Categorization", NAACL 2007. Its linear
SVM has the constraint y w (x - v) >= mu (1 - xi), where v is document x without one rationale. For
a linear student, this is the loss of an additional example (x - v) / mu. `weight` is its C_contrast
/ C; weight decay corresponds to 1 / C. Deviations: cross-entropy on the documents, nonlinear
students, several classes, and one random rationale of each row per step instead of all. For an
image, the whole region is removed.
"""

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from lupi.core import Batch, Losses, Method, RowLoss, Task
from lupi.errors import LupiError
from lupi.loaders.xstar.regions import draw_span, without
from lupi.noise.batchnorm import untracked
from lupi.search import Range, Space
from lupi.settings import Settings


class ContrastSettings(Settings):
    """Margin and weight of the contrast."""

    weight: float = Field(1.0, ge=0)
    """Weight of a row's contrast relative to its own loss: the paper's C_contrast / C."""
    mu: float = Field(1.0, gt=0)
    """Margin between x and its contrast, in log-odds of the label."""
    remove: Literal["span", "region"] | None = None
    """What is removed: one `span` of the rationale, or the whole `region`. By default a span for
    texts, as in the paper, and the region for images."""


class Contrast(Method):
    """Train to be less certain of the label if the region is missing."""

    name = "contrast"
    summary = "removing the region must lower the label's score (NAACL 2007)"
    uses_xstar = True
    kinds = ("region",)
    output_kinds = ("classes",)
    Settings = ContrastSettings
    search: ClassVar[Space] = {
        "settings.weight": Range(low=0.01, high=10, log=True),
        "settings.mu": Range(low=0.01, high=10, log=True),
        **Method.search,
    }

    def __init__(self, net: nn.Module, task: Task, settings: ContrastSettings) -> None:
        super().__init__(net, task, settings)
        of_words = task.places == "words"
        if settings.remove == "span" and not of_words:
            raise LupiError("remove: span is for texts; use `region` for images")
        self._removes_span = of_words and settings.remove != "region"

    def loss(self, batch: Batch) -> Losses:
        """Return the task's loss plus that of the contrasts; rows without x* have none."""
        region, has = batch.privileged()
        output = self.net(batch.x)
        plain = self.task.example_loss(output, batch.y)
        contrasts = torch.zeros_like(plain)
        if has.any():
            removed = self._removed(region[has])
            with untracked(self.net):
                without_it = self.net(without(batch.x[has], removed))
            gain = log_odds(output[has], batch.y[has]) - log_odds(without_it, batch.y[has])
            # An empty region removes nothing, so there is no contrast.
            each = (1 - gain / self.settings.mu).relu() * removed.flatten(1).amax(1)
            contrasts[has] = each.to(plain.dtype)
        return {"task": RowLoss(plain), "contrast": RowLoss(contrasts, self.settings.weight)}

    def _removed(self, region: Tensor) -> Tensor:
        if not self._removes_span:
            return region
        return draw_span(region, torch.rand_like(region[:, 0, 0]))


def log_odds(output: Tensor, y: Tensor) -> Tensor:
    """Return log p(y) - log(1 - p(y)) of each row, (B,), from logits (B, K)."""
    own = F.one_hot(y, output.shape[1]).bool()
    others = output.masked_fill(own, -torch.inf).logsumexp(1)
    return output[own] - others
