"""Students on the maps of a pretrained backbone: mix channels, pool over places, classify.

    f = relu(W (maps - mean) / std),   output = head(pool(f))

With a frozen backbone, x is its cached maps, and the student is this part alone. The whole student,
from pixels, has the backbone as the first layer of its `trunk`; its other weights are the same.
"""

from collections import OrderedDict
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lupi.networks.backbones import Backbone
from lupi.networks.pooling import Pooling, build_pooling
from lupi.networks.weights import he_init


class ScaledMix(nn.Module):
    """Standardise the channels of a map and mix them at each place: W (x - mean) / std + b.

    The weights are scaled instead of the map, which is much larger.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, mean: Sequence[float], std: Sequence[float], n_channels: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean))
        self.register_buffer("std", torch.tensor(std))
        self.conv = nn.Conv2d(len(mean), n_channels, 1).apply(he_init)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, C, H, W) to (B, n_channels, H, W)."""
        weight = self.conv.weight / self.std.view(-1, 1, 1)
        assert self.conv.bias is not None
        bias = self.conv.bias - weight.flatten(1) @ self.mean
        return F.conv2d(x, weight, bias)


class MapStudent(nn.Module):
    """`trunk`: backbone (if any), mix, pooling with the site `places`; `head`: dropout, one layer.

    Args:
        n_outputs: Classes.
        mean: Mean of each channel of the maps.
        std: Standard deviation of each channel of the maps.
        n_channels: Channels of f.
        pooling: How f becomes a vector.
        dropout: Bernoulli rate before the last layer.
        backbone: From pixels to maps; None: x is maps.
    """

    def __init__(
        self,
        n_outputs: int,
        mean: Sequence[float],
        std: Sequence[float],
        n_channels: int,
        pooling: Pooling,
        dropout: float,
        backbone: Backbone | None = None,
    ) -> None:
        super().__init__()
        pool = build_pooling(pooling, n_channels)
        mix = ScaledMix(mean, std, n_channels)
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        if backbone is not None:
            layers["backbone"] = backbone
        layers |= {"mix": mix, "relu": nn.ReLU(), "pool": pool}
        self.trunk = nn.Sequential(layers)
        out = nn.Linear(pool.n_outputs, n_outputs)
        self.head = nn.Sequential(OrderedDict(drop1=nn.Dropout(dropout), out=out.apply(he_init)))

    def forward(self, x: Tensor) -> Tensor:
        """Map x (B, C, H, W), maps or pixels in [0, 1], to outputs (B, n_outputs)."""
        output: Tensor = self.head(self.trunk(x))
        return output


def with_backbone(student: nn.Module, backbone: nn.Module) -> nn.Module:
    """Return a student from pixels or words, for one from maps or vectors; they share weights."""
    return nn.Sequential(OrderedDict(backbone=backbone, student=student))
