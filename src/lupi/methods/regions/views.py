"""Views: the student also sees x restricted to the region, with the same label.

    loss = L(f(x), y) + weight * L(f(x restricted to the region), y)

Training on blacked-out images is a baseline of Lambert, Sener, Savarese, CVPR 2018, which shows
the student nothing else; here it sees both. In expectation, with weight p / (1 - p), this is
Bernoulli noise with one draw for everything outside the region, which is gone with probability p:
the kin of heteroscedastic dropout with one draw for all places.
"""

from typing import ClassVar

import torch
from pydantic import Field

from lupi.core import Batch, Losses, Method, RowLoss
from lupi.data.xstar.restrict import restrict
from lupi.nn.batchnorm import untracked
from lupi.search import Range, Space
from lupi.settings import Settings


class ViewsSettings(Settings):
    """How much the restricted view counts."""

    weight: float = Field(1.0, ge=0)
    """Of a row's view, beside its whole x, which counts 1."""


class Views(Method):
    """Train on x, and on what the region shows of it."""

    name = "views"
    summary = "the student also sees x restricted to the region of x*"
    uses_xstar = True
    kinds = ("region",)
    Settings = ViewsSettings
    search: ClassVar[Space] = {
        "settings.weight": Range(low=0.1, high=10, log=True),
        **Method.search,
    }

    def loss(self, batch: Batch) -> Losses:
        """Return the task's loss plus the weighted loss of the views; rows without x* have none.

        Batch norms do not record the views, as predictions are made from whole x.
        """
        region, has = batch.privileged()
        plain = self.task.example_loss(self.net(batch.x), batch.y)
        views = torch.zeros_like(plain)
        if batch.whole.any_xstar(has):
            with batch.whole.only_xstar(), untracked(self.net):
                output = self.net(restrict(batch.x[has], region[has]))
            views[has] = self.task.example_loss(output, batch.y[has])
        return Losses({"task": RowLoss(plain), "view": RowLoss(views, self.settings.weight)})
