"""Multi-task learning: a decoder predicts the region, and is discarded after training.

    loss = cross-entropy + weight * binary-cross-entropy(decoder(z), mask)

z is the last convolutional map. The baseline "Multi-Task w/ Mask" of Lambert, Sener, Savarese,
CVPR 2018, with the decoder of Noh, Hong, Han: "Learning Deconvolution Network for Semantic
Segmentation", ICCV 2015: each stage enlarges the map, then convolves it (a deconvolution of stride
1 is a convolution) with batch norm and ReLU. Enlarging repeats pixels; DeconvNet puts them back at
the positions chosen by max-pooling, which needs a pooling layer for each size.
Addition: for texts, the decoder is a linear layer that predicts from each word vector whether the
word belongs to the rationale.
"""

from collections.abc import Sequence
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from lupi.core import Batch, Losses, Method, RowLoss, Task
from lupi.errors import LupiError
from lupi.networks.weights import he_init
from lupi.noise.sites import find_sites, map_sites, reading, site_shapes
from lupi.search import Range, Space
from lupi.settings import Settings

MIN_CHANNELS = 16


class MultitaskMaskSettings(Settings):
    """Weight, input and depth of the decoder."""

    weight: float = Field(0.1, ge=0)
    """Weight of the decoder's loss."""
    site: str | None = None
    """Input of the decoder, such as `trunk.site3`; by default the last map. For texts, a site
    with one vector per word."""
    n_convs: int = Field(2, ge=1, le=4)
    """Convolutions in each stage of the decoder."""


class MultitaskMask(Method):
    """Train to predict the target and the region."""

    name = "multitask-mask"
    summary = "a decoder predicts the region marked by x*"
    uses_xstar = True
    kinds = ("region",)
    Settings = MultitaskMaskSettings
    search: ClassVar[Space] = {
        "settings.weight": Range(low=0.01, high=10, log=True),
        **Method.search,
    }

    def __init__(self, net: nn.Module, task: Task, settings: MultitaskMaskSettings) -> None:
        super().__init__(net, task, settings)
        if task.places == "words":
            self._build_for_words(net, task, settings)
            return
        example = task.example()
        maps = map_sites(net, example, settings.site)
        *_, (name, deepest) = maps.items()
        shapes = [example.shape[1:], *maps.values()]  # from the image to the deepest map
        sizes = dict.fromkeys((shape[1], shape[2]) for shape in reversed(shapes))
        sizes.pop((deepest[1], deepest[2]))
        self._site = find_sites(net, [name])
        self.decoder = Decoder(deepest[0], list(sizes), settings.n_convs)

    def _build_for_words(self, net: nn.Module, task: Task, settings: MultitaskMaskSettings) -> None:
        if settings.n_convs != 2:
            raise LupiError("n_convs has no effect for texts; remove it")
        sites = find_sites(net, ["*"] if settings.site is None else [settings.site])
        shapes = site_shapes(net, sites, task.example())
        of_words = [name for name, found in shapes.items() if len(found.places) == 1]
        if not of_words:
            raise LupiError("site: the decoder needs one vector per word, as at `trunk.words`")
        self._site = find_sites(net, [of_words[-1]])
        self.word_decoder = nn.Linear(shapes[of_words[-1]].n_channels, 1)

    def loss(self, batch: Batch) -> Losses:
        """Return the task's loss plus the weighted loss of the decoder."""
        mask, has = batch.privileged()
        with reading(self._site) as seen:
            task = self.task_loss(self.net(batch.x), batch)
        (features,) = seen.values()
        each = mask.new_zeros(0)
        if has.any():
            features, mask = features[has], mask[has]
            if self.task.places == "words":
                each = self._word_losses(features, batch.x[has], mask)
            else:
                predicted = self.decoder(features)
                each = F.binary_cross_entropy_with_logits(predicted, mask, reduction="none")
        return {"task": task, "mask": RowLoss(each, self.settings.weight, only_xstar=True)}

    def _word_losses(self, features: Tensor, x: Tensor, mask: Tensor) -> Tensor:
        """Return the mean over the words of each row, (n,)."""
        is_word = (x > 0).to(mask.dtype)  # (n, T)
        predicted = self.word_decoder(features)[..., 0]
        each = F.binary_cross_entropy_with_logits(predicted, mask[:, 0], reduction="none")
        return (each * is_word).sum(1) / is_word.sum(1).clamp(min=1)


class Decoder(nn.Module):
    """Map features (B, n_in, h, w) to logits of the mask, (B, 1, H, W).

    Args:
        n_in: channels of the features; each stage halves them, down to 16.
        sizes: height and width after each stage, the image's last.
        n_convs: convolutions in a stage.
    """

    def __init__(self, n_in: int, sizes: Sequence[tuple[int, int]], n_convs: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for size in sizes:
            layers.append(nn.Upsample(size))
            n_hidden = max(n_in // 2, MIN_CHANNELS)
            for _ in range(n_convs):
                conv = nn.Conv2d(n_in, n_hidden, 3, padding=1, bias=False)
                layers += [conv, nn.BatchNorm2d(n_hidden), nn.ReLU()]
                n_in = n_hidden
        self.layers = nn.Sequential(*layers, nn.Conv2d(n_in, 1, 1))
        self.apply(he_init)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # stub lacks it

    def forward(self, features: Tensor) -> Tensor:
        """Enlarge and convolve, stage by stage."""
        out: Tensor = self.layers(features)
        return out
