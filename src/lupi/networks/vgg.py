"""VGG with batch norm, for images of any size, with a site after every block.

Simonyan, Zisserman: "Very Deep Convolutional Networks for Large-Scale Image Recognition", 2015.
Initialised after He et al. 2015. A `Pixels` layer comes first: it takes pixels in [0, 1], so that
an image blacked out outside a box is x * mask, and normalisation follows masking.
"""

from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from lupi.errors import LupiError
from lupi.networks.pooling import AttentionPooling, JoinedMaps, Pooling
from lupi.networks.weights import he_init
from lupi.noise.sites import Site

VGG16 = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
Activation = Literal["relu", "sigmoid"]
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Pixels(nn.Module):
    """Normalise pixels in [0, 1] by the data's mean and standard deviation per channel."""

    mean: Tensor
    std: Tensor

    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean).view(-1, 1, 1))
        self.register_buffer("std", torch.tensor(std).view(-1, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise (B, C, H, W) and lay it out for fast convolutions."""
        return ((x - self.mean) / self.std).contiguous(memory_format=torch.channels_last)


class VGG(nn.Module):
    """`trunk`: convolutional blocks with sites; `head`: fully connected layers with dropout.

    Args:
        blocks: channels of each convolution, block by block; each block halves the image.
        n_hidden: units of each fully connected layer before the last.
        n_outputs: classes.
        image_size: height and width of x.
        mean: of the pixels, per channel; its length is the number of channels.
        std: of the pixels, per channel.
        dropout: Bernoulli rate after each fully connected layer but the last; before the last if
            it is the only one.
        pool: height and width of the head's input map; by default that of the last map.
        fc_activation: activation of the fully connected layers; convolutions have ReLU.
        pooling: `mean` averages the last map to `pool`; attention looks at the maps of the last
            two blocks together.
    """

    def __init__(
        self,
        blocks: Sequence[Sequence[int]],
        n_hidden: Sequence[int],
        n_outputs: int,
        image_size: int,
        mean: Sequence[float] = (0.5,),
        std: Sequence[float] = (0.5,),
        dropout: float = 0.5,
        pool: int | None = None,
        fc_activation: Activation = "relu",
        pooling: Pooling = "mean",
    ) -> None:
        super().__init__()
        side = image_size // 2 ** len(blocks)
        if side < 1:
            raise LupiError(
                f"images of {image_size} px are too small for {len(blocks)} blocks, "
                f"which need {2 ** len(blocks)} px or more"
            )
        trunk: OrderedDict[str, nn.Module] = OrderedDict(pixels=Pixels(mean, std))
        n_in = len(mean)
        for i, channels in enumerate(blocks, start=1):
            trunk[f"block{i}"] = _block(n_in, channels)
            trunk[f"site{i}"] = Site()
            n_in = channels[-1]
        if pooling == "mean":
            side = pool or side
            trunk["pool"] = nn.AdaptiveAvgPool2d(side)
            trunk["flat"] = nn.Flatten()
            self.trunk = nn.Sequential(trunk)
            n_in *= side * side
        else:
            joined = [f"site{i}" for i in range(max(1, len(blocks) - 1), len(blocks) + 1)]
            n_in = sum(channels[-1] for channels in blocks[-2:])
            trunk["pool"] = attention = AttentionPooling(n_in, beside_mean=pooling == "both")
            n_in = attention.n_outputs
            self.trunk = JoinedMaps(trunk, joined)

        head: OrderedDict[str, nn.Module] = OrderedDict()
        for i, n_units in enumerate(n_hidden, start=1):
            head[f"fc{i}"] = nn.Linear(n_in, n_units)
            head[f"{fc_activation}{i}"] = nn.ReLU() if fc_activation == "relu" else nn.Sigmoid()
            head[f"drop{i}"] = nn.Dropout(dropout)
            n_in = n_units
        if not n_hidden:
            head["drop1"] = nn.Dropout(dropout)
        head["out"] = nn.Linear(n_in, n_outputs)
        self.head = nn.Sequential(head)
        self.apply(he_init)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # stub lacks it

    def forward(self, x: Tensor) -> Tensor:
        """Map images (B, C, H, W) in [0, 1] to logits (B, n_outputs)."""
        logits: Tensor = self.head(self.trunk(x))
        return logits


def _block(n_in: int, channels: Sequence[int]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for n_out in channels:
        layers += [nn.Conv2d(n_in, n_out, 3, padding=1), nn.BatchNorm2d(n_out), nn.ReLU()]
        n_in = n_out
    layers.insert(-1, nn.MaxPool2d(2))  # before the last ReLU: the same, on a quarter of the values
    return nn.Sequential(*layers)


def small_vgg(
    n_outputs: int,
    image_size: int,
    width: int = 16,
    n_hidden: int = 128,
    n_convs: int = 1,
    pool: int = 1,
    n_fc: int = 2,
    dropout: float = 0.2,
    **options: Any,
) -> VGG:
    """Build a VGG for small images and few labels.

    It has three blocks of `n_convs` convolutions each, average pooling to `pool` x `pool` places,
    and `n_fc` fully connected layers before the last. Other options are those of `VGG`.
    """
    blocks = [(channels,) * n_convs for channels in (width, 2 * width, 4 * width)]
    options |= {"pool": pool, "dropout": dropout}
    return VGG(blocks, (n_hidden,) * n_fc, n_outputs, image_size, **options)


vgg16_bn = partial(
    VGG, VGG16, (4096, 4096), image_size=224, mean=IMAGENET_MEAN, std=IMAGENET_STD, dropout=0.5
)
"""VGG-16 with batch norm: at 224 px, 1000 classes, the published 138,365,992 weights."""
