"""Group orthogonal networks: some channels respond to the object, the others to the background.

    h = [f, b],   z = [f * F, b * B]
    loss = L(head(z)) + L(mean of f * F) + L(mean of b * B)
           + suppression * (||f * (1 - F)||^2 + ||b * (1 - B)||^2)

h is the last convolutional map, f its foreground and b its background channels; F and B are the
masks of object and background. At test time nothing is masked: z = h.

Chen, Jin, Feng, Yan: "Training Group Orthogonal Neural Networks with Privileged Information",
IJCAI 2017; suppression as in Lambert, Sener, Savarese, CVPR 2018. The student's own head sees z;
GoCNN uses a mean and a single layer.
"""

from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from lupi.core import Batch, Losses, Method, RowLoss, Task
from lupi.errors import LupiError
from lupi.noise.batchnorm import untracked
from lupi.noise.sites import attached, find_sites, map_sites
from lupi.search import Range, Space
from lupi.settings import Settings


class GoCNNSettings(Settings):
    """Division of the channels, and weight of the suppression."""

    suppression: float = Field(1 / 320, ge=0)
    """Weight of the squared responses in the wrong region; GoCNN itself has 1/32."""
    foreground_frac: float = Field(0.75, gt=0, lt=1)
    """Fraction of the channels for the object."""
    site: str | None = None
    """Map whose channels are divided, such as `trunk.site2`; by default the last one."""


class GoCNN(Method):
    """Train with separate channels for object and background."""

    name = "gocnn"
    summary = "separate channels for object and background, given by x*"
    uses_xstar = True
    places = ("pixels",)
    kinds = ("region",)
    Settings = GoCNNSettings
    search: ClassVar[Space] = {
        "settings.suppression": Range(low=1e-4, high=0.1, log=True),
        "settings.foreground_frac": Range(low=0.5, high=0.9),
        **Method.search,
    }

    def __init__(self, net: nn.Module, task: Task, settings: GoCNNSettings) -> None:
        super().__init__(net, task, settings)
        *_, (self._name, shape) = map_sites(net, task.example(), settings.site).items()
        self._sites = find_sites(net, [self._name])
        n_channels, self._size = shape[0], (shape[1], shape[2])
        if n_channels < 2:
            raise LupiError(
                f"site: {self._name} has only one channel, which can't be divided into two groups"
            )
        n_foreground = round(settings.foreground_frac * n_channels)
        self._n_foreground = min(max(n_foreground, 1), n_channels - 1)
        with torch.no_grad(), untracked(net):
            n_outputs = net(task.example()).shape[1]
        self.foreground = nn.Linear(self._n_foreground, n_outputs)
        self.background = nn.Linear(n_channels - self._n_foreground, n_outputs)

    def loss(self, batch: Batch) -> Losses:
        """Return the loss of the student, of both groups, and the suppression."""
        regions = self._regions(*batch.privileged())
        groups: list[Tensor] = []

        def divide(h: Tensor) -> Tensor:
            groups.extend(h.split([self._n_foreground, h.shape[1] - self._n_foreground], dim=1))
            return torch.cat([g * region for g, region in zip(groups, regions, strict=True)], dim=1)

        with attached(self._sites, {self._name: divide}):
            task = self.task.example_loss(self.net(batch.x), batch.y)
        by_group, wrong = torch.zeros_like(task), torch.zeros_like(task)  # (B,)
        heads = (self.foreground, self.background)
        for group, region, head in zip(groups, regions, heads, strict=True):
            output = head((group * region).mean((2, 3)))
            by_group = by_group + self.task.example_loss(output, batch.y)
            wrong = wrong + (group * (1 - region)).square().flatten(1).sum(1)
        return {
            "task": RowLoss(task),
            "groups": RowLoss(by_group),
            "suppression": RowLoss(wrong, self.settings.suppression),
        }

    def _regions(self, mask: Tensor, has: Tensor) -> tuple[Tensor, Tensor]:
        """Return the masks of object and background, (B, 1, h, w) each.

        A place of the map that contains parts of both belongs to both; so does every place of a
        row without x*, which disables its suppression.
        """
        missing = (~has).to(mask.dtype)[:, None, None, None]
        foreground = F.adaptive_max_pool2d(mask, self._size)
        background = F.adaptive_max_pool2d(1 - mask, self._size)
        return torch.maximum(foreground, missing), torch.maximum(background, missing)
