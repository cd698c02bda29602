"""Imagination: the student's encoder also predicts the vector x*, by a margin over other rows.

    v = tanh(W mean(h)),   loss = cross-entropy
        + weight * sum over other rows j of max(0, margin - cos(v, x*) + cos(v, x*_j))

Elliott, Kádár: "Imagination Improves Multimodal Translation", IJCNLP 2017. h are the encoder's
states, the other rows those of the batch. Deviations: every step uses both losses (the paper draws
one of them); the mean is over rows with x*; in a network without an encoder, the input of the last
site replaces mean(h).
"""

from typing import ClassVar

from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from lupi.core import Batch, Losses, Method, RowLoss, Task
from lupi.methods.students import try_pass
from lupi.noise.sites import find_sites, layer_outputs, reading, site_shapes
from lupi.search import Range, Space
from lupi.settings import Settings
from lupi_paper.translation.networks.seq2seq import Memory


class ImaginationSettings(Settings):
    """Weight and margin of the second loss."""

    weight: float = Field(1.0, ge=0)
    """Weight of the second loss."""
    margin: float = Field(0.1, ge=0, le=2)
    """Margin between the cosines with the row's own x* and with another row's."""


class Imagination(Method):
    """Train to predict the target and the vector x*."""

    name = "imagination"
    summary = "the encoder predicts the vector x*, by a margin (IJCNLP 2017)"
    uses_xstar = True
    kinds = ("vector",)
    output_kinds = ("classes", "gaussian", "tokens")
    Settings = ImaginationSettings
    search: ClassVar[Space] = {
        "settings.weight": Range(low=0.1, high=10, log=True),
        **Method.search,
    }

    def __init__(self, net: nn.Module, task: Task, settings: ImaginationSettings) -> None:
        super().__init__(net, task, settings)
        if task.output_kind == "tokens":
            with layer_outputs(net.get_submodule("encoder")) as memories:
                try_pass(net, task.example())
            n_features = _mean_state(memories[0]).shape[1]
        else:
            name, (shape, _) = list(
                site_shapes(net, find_sites(net, ["*"]), task.example()).items()
            )[-1]
            self._site = find_sites(net, [name])
            n_features = shape.numel()
        self.imagine = nn.Sequential(nn.Linear(n_features, task.xstar_dim), nn.Tanh())

    def loss(self, batch: Batch) -> Losses:
        """Return the task's loss plus the weighted margin loss of the rows with x*."""
        xstar, has = batch.privileged()
        output, features = self._pass(batch)
        each = self._margin_loss(self.imagine(features[has]), xstar[has])
        return {
            "task": self.task_loss(output, batch),
            "imagination": RowLoss(each, self.settings.weight, only_xstar=True),
        }

    def _pass(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the student's output, and the features (B, n) from which x* is predicted."""
        if self.task.output_kind == "tokens":
            with layer_outputs(self.net.get_submodule("encoder")) as memories:
                output = self.net(batch.x)
            return output, _mean_state(memories[0])
        with reading(self._site) as seen:
            output = self.net(batch.x)
        (features,) = seen.values()
        return output, features.flatten(1)

    def _margin_loss(self, imagined: Tensor, xstar: Tensor) -> Tensor:
        """Return the margin violations (k,) by the x* of the other rows; both are (k, D)."""
        cosine = F.normalize(imagined) @ F.normalize(xstar).T  # (k, k)
        too_near = (self.settings.margin - cosine.diagonal()[:, None] + cosine).relu()
        each: Tensor = too_near.sum(1) - too_near.diagonal()
        return each


def _mean_state(memory: Memory) -> Tensor:
    """Return the mean of the encoder's states (B, H) over words."""
    weight = memory.is_word.to(memory.states.dtype)[..., None]  # (B, S, 1)
    return (memory.states * weight).sum(1) / weight.sum(1)
