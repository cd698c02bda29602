"""Pretrained image networks as parts of students: pixels to a map of features.

A frozen backbone is applied once, its maps are cached, and a student is trained on them. A tuned
backbone is a part of the student. Batch norms always use the statistics of the pretraining.

- `efficientnet-lite0`: weights of the extra `lupi[features]`; maps of strides 8 and 16 together.
- `transformers`: `model` is a folder, or a name of the local hub cache, with safetensors; the
  patches of a vision transformer, or the last map of a CNN.

Nothing is downloaded, and no code of a model's folder is run.
"""

import hashlib
import json
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import torch
from torch import Tensor, nn

from lupi.errors import LupiError
from lupi.limits import read_regular
from lupi.networks.pooling import join_maps
from lupi.networks.pretrained import EFFICIENTNET, load_network, untrained_efficientnet

BackboneName = Literal["efficientnet-lite0", "transformers"]
BACKBONES: tuple[BackboneName, ...] = ("efficientnet-lite0", "transformers")
Tune = Literal["none", "last", "all"]
"""Which weights of a backbone are trained: none (frozen), those of the last block, or all."""


class Source(NamedTuple):
    """Where the weights of a backbone come from."""

    name: str
    model: str | None
    checksum: str
    """SHA-256 of the weights."""
    config: dict[str, Any] | None = None
    """Of `transformers`: the model's configuration, from which it can be built without a folder."""


class Backbone(nn.Module):
    """Pixels in [0, 1], (B, 3, S, S), to features (B, C, H, W).

    Args:
        net: Network.
        maps: Function from the network and normalised pixels to features.
        last: Modules that `tune: last` trains.
        mean: Mean of the pixels that the network expects, per channel.
        std: Standard deviation of the pixels that the network expects, per channel.
        source: Where its weights come from.
    """

    mean: Tensor
    std: Tensor
    lr_factor: float = 1.0
    """Learning rate of its weights, as a multiple of the student's."""

    def __init__(
        self,
        net: nn.Module,
        maps: Callable[[nn.Module, Tensor], Tensor],
        last: list[nn.Module],
        mean: tuple[float, ...],
        std: tuple[float, ...],
        source: Source,
    ) -> None:
        super().__init__()
        self.net = net
        self.source = source
        self._maps, self._last = maps, [last]  # in a list: these modules are registered in `net`
        self.register_buffer("mean", torch.tensor(mean).view(-1, 1, 1))
        self.register_buffer("std", torch.tensor(std).view(-1, 1, 1))
        self.tune("none")

    def forward(self, x: Tensor) -> Tensor:
        """Map pixels (B, 1 or 3, S, S) to features (B, C, H, W)."""
        if x.shape[1] == 1:
            x = x.expand(-1, 3, -1, -1)
        return self._maps(self.net, (x - self.mean) / self.std)

    def tune(self, which: Tune) -> Self:
        """Choose the weights to train."""
        self.requires_grad_(which == "all")
        for module in self._last[0] if which == "last" else []:
            module.requires_grad_(True)
        return self.eval()

    def train(self, mode: bool = True) -> Self:
        """Stay in `eval()`: batch norms keep their statistics, nothing is dropped."""
        return super().train(False)


def load_backbone(name: str, model: str | None = None) -> Backbone:
    """Return a pretrained backbone, frozen.

    Args:
        name: One of `BACKBONES`.
        model: Of `transformers`: a folder or a name of the local hub cache.
    """
    if name == EFFICIENTNET:
        net = load_network(EFFICIENTNET)
        return _efficientnet(net, Source(EFFICIENTNET, None, checksum_of(net)))
    if model is None:
        raise LupiError(
            "network.model: is required for transformers: a folder with config.json and "
            "model.safetensors, or the name of a model of the local hub cache"
        )
    loaded: Any = load_pretrained(model)
    config = json.loads(loaded.config.to_json_string(use_diff=True))
    source = Source("transformers", model, checksum_of(loaded), config)
    return _transformers(loaded, source, *_pixel_statistics(model))


def maps_shape(backbone: Backbone, size: int) -> tuple[int, int, int]:
    """Return the shape (C, H, W) of the maps of images of `size` pixels."""
    with torch.no_grad():
        _, n_channels, height, width = backbone(torch.zeros(1, 3, size, size)).shape
    return n_channels, height, width


def empty_backbone(source: Source) -> Backbone:
    """Build a backbone whose weights are to be loaded from a file."""
    if source.name == EFFICIENTNET:
        return _efficientnet(untrained_efficientnet(), source)
    return _transformers(untrained_model(source), source, (0.5,) * 3, (0.5,) * 3)


def untrained_model(source: Source) -> nn.Module:
    """Build a `transformers` model from its configuration, without weights."""
    try:
        from transformers import AutoConfig, AutoModel
    except ImportError:
        raise LupiError("this student needs a package: pip install transformers") from None
    try:
        config = AutoConfig.for_model(**(source.config or {}))
        with torch.device("cpu"):  # files have no values of constant buffers
            net: nn.Module = AutoModel.from_config(config)
    except (TypeError, ValueError, KeyError) as error:
        raise LupiError(f"backbone.config: not a model that transformers knows: {error}") from None
    return without_pooler(net)


def find_backbone(source: Source) -> Backbone:
    """Load the pretrained backbone that a student was trained on, and check its weights."""
    found = load_backbone(source.name, source.model)
    check_source(found.source, source)
    return found


def check_source(found: Source, expected: Source) -> None:
    """Raise an error if weights are not those that a student was trained on."""
    if found.checksum != expected.checksum:
        raise LupiError(
            f"{expected.model or expected.name} has other weights than those this student was "
            f"trained on (SHA-256 {found.checksum[:12]}…, expected {expected.checksum[:12]}…); "
            "install that version, or export the student where it was trained"
        )


def _efficientnet(net: nn.Module, source: Source) -> Backbone:
    blocks: Any = net._blocks
    del blocks[11:]  # the rest is not used: strides 8 and 16 end here
    for unused in ("_conv_head", "_bn1", "_avg_pooling", "_dropout", "_fc"):
        delattr(net, unused)

    half = (0.5,) * 3
    return Backbone(net, _efficientnet_maps, list(blocks[8:]), half, half, source)


def _efficientnet_maps(net: Any, x: Tensor) -> Tensor:
    x = net._swish(net._bn0(net._conv_stem(x)))
    maps = []
    for i, block in enumerate(net._blocks):
        x = block(x)
        if i in (4, 10):
            maps.append(x)
    return join_maps(maps)


def _transformers(
    net: nn.Module, source: Source, mean: tuple[float, ...], std: tuple[float, ...]
) -> Backbone:
    last = getattr(getattr(net, "encoder", net), "layer", getattr(net, "layers", None))
    modules = list(last)[-1:] if isinstance(last, nn.ModuleList) else [net]
    return Backbone(net, _transformers_maps, modules, mean, std, source)


def _transformers_maps(net: Any, x: Tensor) -> Tensor:
    patch = getattr(net.config, "patch_size", None)
    if patch is None:
        states: Tensor = net(x).last_hidden_state
        if states.dim() != 4:
            raise LupiError(f"network.model: {type(net).__name__} gives no map of an image")
        return states
    own = getattr(net.config, "image_size", x.shape[-1])
    resized = {} if own in (x.shape[-1], [x.shape[-1]] * 2) else {"interpolate_pos_encoding": True}
    tokens: Tensor = net(x, **resized).last_hidden_state  # (B, T, C): patches come last
    side = x.shape[-1] // patch
    maps: Tensor = tokens[:, -side * side :].transpose(1, 2).unflatten(2, (side, side))
    return maps


def load_pretrained(model: str) -> nn.Module:
    """Return a `transformers` model of a folder or of the local hub cache, in `eval()`.

    Only safetensors are read; nothing is fetched, and no code of the folder is run.
    """
    try:
        from transformers import AutoModel
        from transformers.utils.logging import disable_progress_bar
    except ImportError:
        raise LupiError(
            "network.name: transformers needs a package: pip install transformers"
        ) from None
    disable_progress_bar()  # it counts weights
    try:
        net: nn.Module = AutoModel.from_pretrained(
            model, local_files_only=True, use_safetensors=True, trust_remote_code=False
        )
    except (OSError, ValueError, KeyError) as error:
        raise LupiError(
            f"network.model: {model} is neither a folder with config.json and model.safetensors "
            f"nor in the local hub cache ({str(error).splitlines()[0]}). Download it with "
            f"`hf download {model} --local-dir FOLDER` and set network.model: FOLDER"
        ) from None
    return without_pooler(net).eval()


def without_pooler(net: nn.Module) -> nn.Module:
    """Remove the layer that makes one vector of all places; many files have no weights for it."""
    if isinstance(getattr(net, "pooler", None), nn.Module):
        net.pooler = None  # type: ignore[assignment]
    return net


def _pixel_statistics(model: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return mean and deviation of pixels that a model expects, by its preprocessor_config.json."""
    path = Path(model) / "preprocessor_config.json"
    if not path.exists():
        return (0.5,) * 3, (0.5,) * 3
    try:
        raw = json.loads(read_regular(path))
        return tuple(map(float, raw["image_mean"])), tuple(map(float, raw["image_std"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LupiError(f"network.model: {path} can't be read: {error}") from None


def checksum_of(net: nn.Module) -> str:
    """Return the SHA-256 of the names and values of all weights."""
    digest = hashlib.sha256()
    for name, value in sorted(net.state_dict().items()):
        digest.update(name.encode())
        digest.update(value.contiguous().numpy().tobytes())
    return digest.hexdigest()


@lru_cache(maxsize=2)
def shared_backbone(name: str, model: str | None) -> Backbone:
    """Return a frozen backbone that this process loads once; do not train it."""
    return load_backbone(name, model)
