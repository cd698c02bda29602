"""A decoder from a map of features back to the size of the image.

Noh, Hong, Han: "Learning Deconvolution Network for Semantic Segmentation", ICCV 2015. Each stage
enlarges the map, then convolves it (a deconvolution of stride 1 is a convolution) with batch norm
and ReLU. Upsampling repeats pixels; DeconvNet puts them back at the positions chosen by
max-pooling, which needs a pooling layer for each size, and a ResNet has at most one.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from lupi.nn.initialise import he_init

MIN_CHANNELS = 16


class Decoder(nn.Module):
    """Map features (B, n_in, h, w) to (B, n_out, H, W).

    Args:
        n_in: channels of the features; each stage halves them, down to 16.
        sizes: height and width after each stage, the image's last.
        n_out: channels of the output.
        n_convs: convolutions in a stage.
    """

    def __init__(
        self, n_in: int, sizes: Sequence[tuple[int, int]], n_out: int, n_convs: int
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for size in sizes:
            layers.append(nn.Upsample(size))
            n_hidden = max(n_in // 2, MIN_CHANNELS)
            for _ in range(n_convs):
                conv = nn.Conv2d(n_in, n_hidden, 3, padding=1, bias=False)
                layers += [conv, nn.BatchNorm2d(n_hidden), nn.ReLU()]
                n_in = n_hidden
        self.layers = nn.Sequential(*layers, nn.Conv2d(n_in, n_out, 1))
        self.apply(he_init)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # stub lacks it

    def forward(self, features: Tensor) -> Tensor:
        """Enlarge and convolve, stage by stage."""
        out: Tensor = self.layers(features)
        return out
