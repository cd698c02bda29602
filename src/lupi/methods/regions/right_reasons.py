"""Right for the right reasons: a penalty on input gradients outside the region.

    g_d = d/dx_d sum_k log p_k(x)
    loss = cross-entropy(f(x), y) + weight * sum_d (A_d g_d)^2 / sum_d g_d^2

A is 1 outside the region and 0 inside. Ross, Hughes, Doshi-Velez: "Right for the Right Reasons:
Training Differentiable Models by Constraining their Explanations", IJCAI 2017. Deviation: the paper
has no denominator (`penalty: sum`, whose weight is its lambda_1). Its sum grows with the number of
pixels, and a network that predicts the same for all images makes it smallest; the share does not
depend on the size of gradients. The paper sums both losses over rows; here both are means over the
rows of the batch, which does not change their ratio. Addition: words have no gradient, so the
gradient is taken with respect to a factor of 1 on each word vector.
"""

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import nn

from lupi.core import Batch, Losses, Method, RowLoss, Task
from lupi.noise.sites import find_sites, reading
from lupi.search import Range, Space
from lupi.settings import Settings

WORDS = "trunk.words"
TINY = 1e-12


class RightReasonsSettings(Settings):
    """Weight of the penalty."""

    weight: float = Field(1.0, ge=0)
    """Weight of the penalty; for `sum` the paper's lambda_1, for which it recommends a value that
    makes both losses similar in size."""
    penalty: Literal["share", "sum"] = "share"
    """`share`: the share of the squared gradients that is outside the region; `sum`: their sum, as
    in the paper, whose size depends on images and network."""


class RightReasons(Method):
    """Train with a penalty on input gradients outside the region."""

    name = "right-reasons"
    summary = "a penalty on input gradients outside the region (IJCAI 2017)"
    uses_xstar = True
    kinds = ("region",)
    output_kinds = ("classes",)
    Settings = RightReasonsSettings
    search: ClassVar[Space] = {
        "settings.weight": Range(low=0.01, high=1000, log=True),
        **Method.search,
    }

    def __init__(self, net: nn.Module, task: Task, settings: RightReasonsSettings) -> None:
        super().__init__(net, task, settings)
        self._of_words = task.places == "words"
        self._site = find_sites(net, [WORDS]) if self._of_words else {}

    def loss(self, batch: Batch) -> Losses:
        """Return the task's loss plus the weighted penalty; rows without x* have none.

        With batch norms, a row's output depends on other rows; the gradient includes this part.
        """
        region, has = batch.privileged()
        x = batch.x if self._of_words else batch.x.detach().requires_grad_()
        with reading(self._site) as seen:
            output = self.net(x)
        outside = (1 - region) * has.view(-1, *[1] * (region.dim() - 1))
        evidence = output.log_softmax(1).sum()
        if self._of_words:
            (vectors,) = seen.values()  # (B, T, C)
            (slope,) = torch.autograd.grad(evidence, vectors, create_graph=True)
            slope = (slope * vectors).sum(2)[:, None]  # (B, 1, T): for a factor on each word
        else:
            (slope,) = torch.autograd.grad(evidence, x, create_graph=True)
        wrong = (outside * slope).square().flatten(1).sum(1)  # (B,)
        if self.settings.penalty == "share":
            wrong = wrong / slope.square().flatten(1).sum(1).clamp(min=TINY)
        reasons = RowLoss(wrong, self.settings.weight)
        return {"task": self.task_loss(output, batch), "reasons": reasons}
