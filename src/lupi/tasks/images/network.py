"""The network of an image task and its settings."""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field, model_validator
from torch import nn

from lupi.networks.backbones import (
    BACKBONES,
    Backbone,
    Tune,
    load_backbone,
    shared_backbone,
)
from lupi.networks.map_student import MapStudent
from lupi.networks.pooling import Pooling
from lupi.networks.resnet import resnet18, resnet50
from lupi.networks.vgg import Activation, small_vgg, vgg16_bn
from lupi.settings import Settings

RESNETS = {"resnet18": resnet18, "resnet50": resnet50}


class ImageNetworkSettings(Settings):
    """The student for images."""

    name: Literal[
        "small-vgg", "vgg16-bn", "resnet18", "resnet50", "efficientnet-lite0", "transformers"
    ] = "small-vgg"
    """Its sites: `trunk.site1` … after each block or stage, `head.drop1`, a VGG's `head.drop2`; the
    input of an attention pooling is `trunk.pool.places`. efficientnet-lite0 and transformers are
    pretrained."""
    pooling: Pooling = "mean"
    """How a map becomes a vector: its `mean`, or by `attention` that the student learns, with a
    place for nowhere; `both`: beside each other."""
    model: str | None = None
    """Of transformers: a folder with config.json and model.safetensors, or the name of a model in
    the local hub cache. Nothing is downloaded."""
    tune: Tune = "none"
    """Of a pretrained network: `none` computes its maps once, caches them and trains what follows;
    `last` trains its last block as well, `all` everything."""
    tune_lr: float = Field(0.1, gt=0, le=1)
    """Learning rate of a pretrained network's own weights, as a multiple of the student's."""
    n_channels: int = Field(64, ge=1, le=4096)
    """Channels between the maps of a pretrained network and the pooling."""
    width: int = Field(16, ge=1, le=512)
    """Channels of the first block of small-vgg; each further block doubles it."""
    n_convs: int = Field(1, ge=1, le=8)
    """Convolutions in each block of small-vgg."""
    pool: int = Field(1, ge=1, le=64)
    """Height and width of the map that the fully connected layers of small-vgg see."""
    n_fc: int = Field(2, ge=0, le=8)
    """Fully connected layers of small-vgg before the last; with 0, dropout is before the last."""
    n_hidden: int = Field(128, ge=1)
    """Units of those layers."""
    dropout: float = Field(0.2, ge=0, lt=1)
    """Bernoulli rate after the fully connected layers; before the only one of other networks."""
    fc_activation: Activation = "relu"
    """Activation of the fully connected layers of VGGs; the CVPR 2018 paper uses `sigmoid` for
    info-dropout."""

    @model_validator(mode="after")
    def _has_effect(self) -> "ImageNetworkSettings":
        if (self.model is not None) != (self.name == "transformers"):
            raise ValueError("model: goes with name: transformers, which needs it")
        if self.tune != "none" and not self.is_pretrained:
            raise ValueError(f"tune: {self.name} is not pretrained; it is trained as a whole")
        if self.pool > 1 and self.pooling != "mean":
            raise ValueError("pool: has no effect with attention; leave it out")
        return self

    @property
    def is_pretrained(self) -> bool:
        """Whether the student contains a pretrained backbone."""
        return self.name in BACKBONES

    @property
    def is_frozen(self) -> bool:
        """Whether x is the maps of a frozen backbone."""
        return self.is_pretrained and self.tune == "none"

    def backbone(self) -> Backbone:
        """Return the frozen backbone, loaded once."""
        return shared_backbone(self.name, self.model)


def build_network(
    settings: ImageNetworkSettings,
    n_classes: int,
    size: int,
    mean: Sequence[float],
    std: Sequence[float],
    backbone: Backbone | None = None,
) -> nn.Module:
    """Build a student for images of `size` pixels, with mean and deviation of each channel.

    The channels are those of the maps if the network is pretrained. A backbone to tune is loaded
    unless it is given.
    """
    s = settings
    if s.is_pretrained:
        backbone = None if s.is_frozen else (backbone or load_backbone(s.name, s.model))
        if backbone is not None:
            backbone.tune(s.tune).lr_factor = s.tune_lr
        return MapStudent(n_classes, mean, std, s.n_channels, s.pooling, s.dropout, backbone)
    options: dict[str, Any] = {
        "image_size": size,
        "mean": mean,
        "std": std,
        "dropout": s.dropout,
        "pooling": s.pooling,
    }
    if s.name in RESNETS:
        return RESNETS[s.name](n_classes, **options)
    options["fc_activation"] = s.fc_activation
    if s.name == "vgg16-bn":
        return vgg16_bn(n_classes, **options)
    options |= s.model_dump(include={"width", "n_hidden", "n_convs", "pool", "n_fc"})
    return small_vgg(n_classes, **options)
