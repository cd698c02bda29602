"""Guided attention: x* teaches the student where to look.

    p = softmax(score(f_1), …, score(f_P), nowhere),   z = sum_j p_j f_j
    loss = cross-entropy(h(z), y) + weight * sum_j -r_j log p_j,   r = region / |region|

f_j are the features at place j (a cell of a map, a word), p is the attention of the student's
pooling. Rows without x* have no second term. An empty region teaches to look "nowhere". Boxes are
regions, several regions share the mass. With `variance`, features outside the region carry noise
f_j * (1 + sqrt(variance * (1 - r_j)) * eps) as well, one eps per channel: heteroscedastic dropout
with a fixed variance on the same student.

Equation (3) of Lambert, Sener, Savarese (CVPR 2018) predicts h(x) = E_{x* ~ p(x*|x)} h+(x, x*) and
calls it intractable. If x* is a place, p is a learned p(x*|x), and the pooling is that expectation.
Related: Li et al., "Tell Me Where to Look: Guided Attention Inference Network", CVPR 2018; Bozic,
Tabernik, Skocaj, "Mixed supervision for surface-defect detection", 2021; Mathew et al.,
"HateXplain", AAAI 2021 (attention taught by rationales).
"""

from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from lupi.core import Batch, Control, Losses, Method, RowLoss, Task
from lupi.networks.pooling import at_places, find_pooling, reading_attention, teach
from lupi.noise.sites import attached
from lupi.search import Range, Space
from lupi.settings import Settings


class GuidedAttentionSettings(Settings):
    """Weight of the teaching, and noise outside the region."""

    weight: float = Field(1.0, ge=0)
    """Weight of the cross-entropy between region and attention."""
    variance: float = Field(0.0, ge=0)
    """Variance of noise on features outside the region, in training; 0: none."""


class GuidedAttention(Method):
    """Train a student that pools by attention to look at the region."""

    name = "guided-attention"
    summary = "x* teaches the student's attention where to look"
    uses_xstar = True
    teaches_attention = True
    kinds = ("region",)
    controls: ClassVar[tuple[Control, ...]] = ("shuffled", "random", "constant")
    Settings = GuidedAttentionSettings
    search: ClassVar[Space] = {
        "settings.weight": Range(low=0.1, high=10, log=True),
        **Method.search,
    }

    def __init__(self, net: nn.Module, task: Task, settings: GuidedAttentionSettings) -> None:
        super().__init__(net, task, settings)
        found = find_pooling(net, self.name)
        self._sites: dict[str, nn.Module] = {name: pool.places for name, pool in found.items()}

    def loss(self, batch: Batch) -> Losses:
        """Return the task's loss, and the cross-entropy of the attention for rows with x*."""
        region, has = batch.privileged()

        def add_noise(features: Tensor) -> Tensor:
            return _noisy(features, region, has, self.settings.variance)

        noise = dict.fromkeys(self._sites, add_noise)
        noisy_sites = self._sites if self.settings.variance else {}
        with attached(noisy_sites, noise), reading_attention(self.net) as seen:
            output = self.net(batch.x)
        taught = [teach(attended, region)[has] for attended in seen]
        guide = RowLoss(torch.stack(taught).mean(0), self.settings.weight, only_xstar=True)
        return Losses({"task": self.task_loss(output, batch), "attention": guide})


def _noisy(features: Tensor, region: Tensor, has: Tensor, variance: float) -> Tensor:
    """Multiply features (B, C, H, W) or (B, T, C) by noise outside the region."""
    is_map = features.dim() == 4
    outside = 1 - at_places(region, tuple(features.shape[2:] if is_map else features.shape[1:2]))
    outside = outside * has.view(-1, *[1] * (outside.dim() - 1))
    sigma = (variance * outside).sqrt().unsqueeze(1 if is_map else 2)
    eps = torch.randn_like(features.mean((2, 3) if is_map else 1, keepdim=True))
    return features * (1 + sigma * eps)
