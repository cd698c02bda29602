"""Group orthogonal networks: some channels respond to the object, the others to the background.

    h = [f, b]
    loss = L(head(h)) + L(mean of f * F) + L(mean of b * B)
           + suppression * (||f * (1 - F)||^2 + ||b * (1 - B)||^2) / ||h||^2

h is the last convolutional map, f its foreground and b its background channels; F and B are the
masks of object and background.

Chen, Jin, Feng, Yan: "Training Group Orthogonal Neural Networks with Privileged Information",
IJCAI 2017; suppression as in Lambert, Sener, Savarese, CVPR 2018. Deviations: the student's own
head; GoCNN uses a mean and a single layer. With `form: paper`, the head sees [f * F, b * B] in
training and h in prediction, and the suppression is not divided. Its size then depends on the map,
and a map of zeros makes it smallest: where objects are small, students ended near chance.
"""

from typing import ClassVar, Literal

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

TINY = 1e-12


class GoCNNSettings(Settings):
    """Division of the channels, and weight of the suppression."""

    form: Literal["share", "paper"] = "share"
    """`share`: the head sees the map as it will in prediction, and the suppression is the share of
    squared responses in the wrong region; `paper`: the head sees the masked map, and the
    suppression is their sum."""
    suppression: float | None = Field(None, ge=0)
    """Weight of the responses in the wrong region; by default 1, and 1/320 for `form: paper` (GoCNN
    itself has 1/32)."""
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
        "settings.suppression": Range(low=0.1, high=10, log=True),
        "settings.foreground_frac": Range(low=0.5, high=0.9),
        **Method.search,
    }

    def __init__(self, net: nn.Module, task: Task, settings: GoCNNSettings) -> None:
        super().__init__(net, task, settings)
        self._as_paper = settings.form == "paper"
        by_default = 1 / 320 if self._as_paper else 1.0
        self._suppression = by_default if settings.suppression is None else settings.suppression
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
            if not self._as_paper:
                return h
            return torch.cat([g * region for g, region in zip(groups, regions, strict=True)], dim=1)

        with attached(self._sites, {self._name: divide}):
            task = self.task.example_loss(self.net(batch.x), batch.y)
        by_group, wrong, whole = (torch.zeros_like(task) for _ in range(3))  # (B,)
        heads = (self.foreground, self.background)
        for group, region, head in zip(groups, regions, heads, strict=True):
            output = head((group * region).mean((2, 3)))
            by_group = by_group + self.task.example_loss(output, batch.y)
            wrong = wrong + (group * (1 - region)).square().flatten(1).sum(1)
            whole = whole + group.square().flatten(1).sum(1)
        if not self._as_paper:
            wrong = wrong / whole.clamp(min=TINY)
        return {
            "task": RowLoss(task),
            "groups": RowLoss(by_group),
            "suppression": RowLoss(wrong, self._suppression),
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
