"""ResNet, for images of any size, with a site after every stage.

He, Zhang, Ren, Sun: "Deep Residual Learning for Image Recognition", CVPR 2016. Bottlenecks have
their stride at the 3x3 convolution, as is now usual; this does not change the number of weights.
For images below 128 px, the stem is a 3x3 convolution of stride 1 without pooling, as in the
paper's networks for CIFAR, so that the last map is not too small. The head has a dropout layer;
with a rate of 0 it is the paper's. Pixels are in [0, 1]: see `lupi.networks.vgg`.
"""

from collections import OrderedDict
from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor, nn

from lupi.networks.pooling import AttentionPooling, Pooling
from lupi.networks.vgg import IMAGENET_MEAN, IMAGENET_STD, Pixels
from lupi.networks.weights import he_init
from lupi.noise.sites import Site

SMALL_BELOW = 128
"""Images below this height and width, in pixels, get the small stem."""


class Residual(nn.Module):
    """`layers(x)` added to x, which is projected if its shape changes."""

    def __init__(self, layers: nn.Module, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.layers = layers
        same = stride == 1 and n_in == n_out
        self.shortcut = nn.Identity() if same else _conv(n_in, n_out, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        """Add, then rectify."""
        return torch.relu(self.layers(x) + self.shortcut(x))


class ResNet(nn.Module):
    """`trunk`: stem and four stages with sites, then the mean; `head`: dropout and one layer.

    Args:
        n_blocks: residual blocks of each stage.
        bottleneck: blocks of 1x1, 3x3 and 1x1 convolutions, or of two 3x3 ones.
        n_outputs: classes.
        image_size: height and width of x, which choose the stem.
        mean: of the pixels, per channel; its length is the number of channels.
        std: of the pixels, per channel.
        dropout: Bernoulli rate before the last layer.
        pooling: how the last map becomes a vector.
    """

    def __init__(
        self,
        n_blocks: Sequence[int],
        bottleneck: bool,
        n_outputs: int,
        image_size: int = 224,
        mean: Sequence[float] = IMAGENET_MEAN,
        std: Sequence[float] = IMAGENET_STD,
        dropout: float = 0.0,
        pooling: Pooling = "mean",
    ) -> None:
        super().__init__()
        block = _bottleneck if bottleneck else _basic
        trunk: OrderedDict[str, nn.Module] = OrderedDict(pixels=Pixels(mean, std))
        trunk["stem"] = _stem(len(mean), small=image_size < SMALL_BELOW)
        n_in = 64
        for i, n in enumerate(n_blocks, start=1):
            n_out = 64 * 2 ** (i - 1) * (4 if bottleneck else 1)
            strides = [1 if i == 1 else 2] + [1] * (n - 1)
            inputs = [n_in] + [n_out] * (n - 1)
            blocks = [block(k, n_out, stride) for k, stride in zip(inputs, strides, strict=True)]
            trunk[f"stage{i}"] = nn.Sequential(*blocks)
            trunk[f"site{i}"] = Site()
            n_in = n_out
        if pooling == "mean":
            trunk["pool"] = nn.AdaptiveAvgPool2d(1)
            trunk["flat"] = nn.Flatten()
        else:
            trunk["pool"] = attention = AttentionPooling(n_in, beside_mean=pooling == "both")
            n_in = attention.n_outputs
        self.trunk = nn.Sequential(trunk)
        self.head = nn.Sequential(
            OrderedDict(drop1=nn.Dropout(dropout), out=nn.Linear(n_in, n_outputs))
        )
        self.apply(he_init)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # stub lacks it

    def forward(self, x: Tensor) -> Tensor:
        """Map images (B, C, H, W) in [0, 1] to logits (B, n_outputs)."""
        logits: Tensor = self.head(self.trunk(x))
        return logits


def _conv(n_in: int, n_out: int, kernel: int, stride: int = 1) -> nn.Sequential:
    conv = nn.Conv2d(n_in, n_out, kernel, stride, padding=kernel // 2, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(n_out))


def _stem(n_in: int, small: bool) -> nn.Sequential:
    if small:
        return nn.Sequential(_conv(n_in, 64, 3), nn.ReLU())
    return nn.Sequential(_conv(n_in, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, padding=1))


def _basic(n_in: int, n_out: int, stride: int) -> Residual:
    layers = nn.Sequential(_conv(n_in, n_out, 3, stride), nn.ReLU(), _conv(n_out, n_out, 3))
    return Residual(layers, n_in, n_out, stride)


def _bottleneck(n_in: int, n_out: int, stride: int) -> Residual:
    width = n_out // 4
    layers = nn.Sequential(
        _conv(n_in, width, 1),
        nn.ReLU(),
        _conv(width, width, 3, stride),
        nn.ReLU(),
        _conv(width, n_out, 1),
    )
    return Residual(layers, n_in, n_out, stride)


resnet18 = partial(ResNet, (2, 2, 2, 2), False)
"""ResNet-18: at 224 px, 1000 classes, the published 11,689,512 weights."""
resnet50 = partial(ResNet, (3, 4, 6, 3), True)
"""ResNet-50: at 224 px, 1000 classes, the published 25,557,032 weights."""
