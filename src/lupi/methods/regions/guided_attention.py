"""Guided attention: x* teaches the student where to look.

    p = softmax(score(f_1), …, score(f_P), nowhere),   z = sum_j p_j f_j
    loss = cross-entropy(h(z), y) + weight * sum_j -r_j / |r| log p_j
           + suppression * sum_j (1 - r_j) |f_j|^2 / sum_j |f_j|^2

f_j are the features at place j (a cell of a map, a word), p is the attention of the student's
pooling, r the region. The third term teaches features to respond to the object alone, as in GoCNN
(Chen, Jin, Feng, Yan, IJCAI 2017), so that it can be found. Rows without x* have the first term
only. An empty region teaches to look "nowhere". Boxes are regions, several regions share the mass.
With `variance`, features outside the region carry noise f_j * (1 + sqrt(variance * (1 - r_j)) *
eps) as well, one eps per channel: heteroscedastic dropout with a fixed variance.

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
from lupi.core.batch import over_rows
from lupi.networks.pooling import at_places, find_pooling, reading_attention, teach
from lupi.noise.sites import attached, reading
from lupi.search import Range, Space
from lupi.settings import Settings

SUPPRESSION = 3.0
TINY = 1e-12


class GuidedAttentionSettings(Settings):
    """Weights of the teaching, and noise outside the region."""

    weight: float = Field(1.0, ge=0)
    """Weight of the cross-entropy between region and attention."""
    suppression: float | None = Field(None, ge=0)
    """Weight of the share of the features' squares that is outside the region; by default 3 for
    images, and 0 for texts."""
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
        usual = SUPPRESSION if task.places == "pixels" else 0.0
        self._suppression = usual if settings.suppression is None else settings.suppression

    def loss(self, batch: Batch) -> Losses:
        """Return the task's loss, and for rows with x* those of attention and features."""
        region, has = batch.privileged()

        def add_noise(features: Tensor) -> Tensor:
            return _noisy(features, region, has, self.settings.variance)

        noise = dict.fromkeys(self._sites, add_noise)
        noisy_sites = self._sites if self.settings.variance else {}
        features = reading(self._sites)  # before noise is added
        with features as found, attached(noisy_sites, noise), reading_attention(self.net) as seen:
            output = self.net(batch.x)
        taught = [teach(attended, region)[has] for attended in seen]
        losses = {
            "task": self.task_loss(output, batch),
            "attention": RowLoss(torch.stack(taught).mean(0), self.settings.weight, True),
        }
        if self._suppression:
            shares = [_share_outside(f, region)[has] for f in found.values()]
            losses["outside"] = RowLoss(torch.stack(shares).mean(0), self._suppression, True)
        return losses


def _noisy(features: Tensor, region: Tensor, has: Tensor, variance: float) -> Tensor:
    """Multiply features (B, C, H, W) or (B, T, C) by noise outside the region."""
    sigma = (variance * _outside(features, region) * over_rows(has, features)).sqrt()
    eps = torch.randn_like(features.mean(_places(features), keepdim=True))
    return features * (1 + sigma * eps)


def _share_outside(features: Tensor, region: Tensor) -> Tensor:
    """Return the share of the squares of features (B, …) that is outside the region, (B,)."""
    squares = features.square()
    outside = (_outside(features, region) * squares).flatten(1).sum(1)
    return outside / squares.flatten(1).sum(1).clamp(min=TINY)


def _outside(features: Tensor, region: Tensor) -> Tensor:
    """Return how far each place is outside the region, (B, 1, H, W) or (B, T, 1)."""
    channel = 1 if features.dim() == 4 else 2
    grid = tuple(features.shape[dim] for dim in _places(features))
    return 1 - at_places(region, grid).unsqueeze(channel)


def _places(features: Tensor) -> tuple[int, ...]:
    """Return the dimensions of the places of features (B, C, H, W) or (B, T, C)."""
    return (2, 3) if features.dim() == 4 else (1,)
