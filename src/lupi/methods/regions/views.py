"""Views: the student also sees x restricted to the region, with the same label.

    loss = L(f(x), y) + weight * L(f(x restricted to the region), y)

Training only on blacked-out images is a baseline in Lambert, Sener, Savarese, CVPR 2018; here the
student sees both. In expectation, with weight p / (1 - p), this is Bernoulli noise with one draw
for everything outside the region, which is removed with probability p. So it is related to
heteroscedastic dropout with one draw for all places.
"""

from typing import ClassVar

import torch
from pydantic import Field

from lupi.core import Batch, Losses, Method, RowLoss
from lupi.loaders.xstar.regions import restrict
from lupi.noise.batchnorm import untracked
from lupi.search import Range, Space
from lupi.settings import Settings


class ViewsSettings(Settings):
    """Weight of the restricted view."""

    weight: float = Field(1.0, ge=0)
    """Weight of the restricted view relative to the complete x."""


class Views(Method):
    """Train on x and on x restricted to the region."""

    name = "views"
    summary = "the student also sees x restricted to the region marked by x*"
    uses_xstar = True
    kinds = ("region",)
    Settings = ViewsSettings
    search: ClassVar[Space] = {
        "settings.weight": Range(low=0.1, high=10, log=True),
        **Method.search,
    }

    def loss(self, batch: Batch) -> Losses:
        """Return the task's loss plus the weighted loss of the views; rows without x* have none.

        Batch norms do not record the views, because predictions use the complete x.
        """
        region, has = batch.privileged()
        plain = self.task.example_loss(self.net(batch.x), batch.y)
        views = torch.zeros_like(plain)
        if has.any():
            with untracked(self.net):
                output = self.net(restrict(batch.x[has], region[has]))
            views[has] = self.task.example_loss(output, batch.y[has])
        return {"task": RowLoss(plain), "view": RowLoss(views, self.settings.weight)}
