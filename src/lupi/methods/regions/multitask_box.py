"""Multi-task learning: a second head predicts x*, and is discarded after training.

    loss = cross-entropy + weight * smooth-L1(head(z), x*),   z: the last convolutional map

The baseline "Multi-Task w/ B.Box" of Lambert, Sener, Savarese, CVPR 2018; the idea is Caruana's:
"Multitask Learning", Machine Learning 1997. Additions: x* may also be a vector, and the head reads
the last site if a network has no map.
"""

from typing import ClassVar

from pydantic import Field
from torch import nn
from torch.nn import functional as F

from lupi.core import Batch, Losses, Method, RowLoss, Task
from lupi.loaders.xstar.regions import mask_box
from lupi.methods.students import check_learned, head_like
from lupi.noise.sites import DROPOUTS, find_sites, reading, site_shapes
from lupi.search import Range, Space
from lupi.settings import Settings


class MultitaskBoxSettings(Settings):
    """Weight of the second task, and input of its head."""

    weight: float = Field(0.1, ge=0)
    """Weight of the second task's loss."""
    site: str | None = None
    """Input of the head, such as `trunk.site3`; by default the last convolutional map."""


class MultitaskBox(Method):
    """Train to predict the target and x* (the box or the vector)."""

    name = "multitask-box"
    summary = "a second head predicts x* (the box or the vector)"
    uses_xstar = True
    places = ("pixels",)
    Settings = MultitaskBoxSettings
    search: ClassVar[Space] = {
        "settings.weight": Range(low=0.01, high=10, log=True),
        **Method.search,
    }

    def __init__(self, net: nn.Module, task: Task, settings: MultitaskBoxSettings) -> None:
        super().__init__(net, task, settings)
        patterns = ["*"] if settings.site is None else [settings.site]
        shapes = site_shapes(net, find_sites(net, patterns), task.example())
        maps = [name for name, found in shapes.items() if len(found.shape) == 3]
        name = (maps or list(shapes))[-1]
        n_out = 4 if task.xstar_kind == "region" else task.xstar_dim
        self._site = find_sites(net, [name])
        if isinstance(self._site[name], DROPOUTS):
            check_learned(net, self._site[name], task.example(), self.name)
        self.head = head_like(net, task.example(), shapes[name].shape.numel(), n_out)

    def loss(self, batch: Batch) -> Losses:
        """Return the task's loss plus the weighted loss of predicting x*."""
        xstar, has = batch.privileged()
        with reading(self._site) as seen:
            task = self.task_loss(self.net(batch.x), batch)
        (features,) = seen.values()
        target = mask_box(xstar) if self.task.xstar_kind == "region" else xstar
        distance = target.new_zeros(0)
        if has.any():
            found = self.head(features[has])
            distance = F.smooth_l1_loss(found, target[has], reduction="none")
        return {"task": task, "box": RowLoss(distance, self.settings.weight, only_xstar=True)}
