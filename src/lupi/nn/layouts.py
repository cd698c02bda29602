"""Layouts of activations: which dimensions are channels, and which are places.

| activations | layout | channels | places |
|---|---|---|---|
| vector (B, C) | `VECTOR` | 1 | none |
| sequence (B, T, C): LSTM, transformer | `SEQUENCE` | 2 | words or time steps |
| sequence (B, C, L): `nn.Conv1d` | `CHANNELS_FIRST` | 1 | time steps |
| feature map (B, C, H, W) | `MAP` | 1 | pixels |
"""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from lupi.errors import LupiError
from lupi.nn.sites import find_sites, reading


class Layout(NamedTuple):
    """The dimension of the channels and those of the places; dimension 0 is the rows."""

    channel: int
    places: tuple[int, ...] = ()


VECTOR = Layout(1)
SEQUENCE = Layout(2, (1,))
CHANNELS_FIRST = Layout(1, (2,))
MAP = Layout(1, (2, 3))


class SiteShape(NamedTuple):
    """The shape of one example's activations at a site, and their layout."""

    shape: torch.Size
    layout: Layout

    @property
    def n_channels(self) -> int:
        """Number of channels (units, for a vector)."""
        return self.shape[self.layout.channel - 1]

    @property
    def places(self) -> tuple[int, ...]:
        """Size of each dimension of places; empty for a vector."""
        return tuple(self.shape[dim - 1] for dim in self.layout.places)

    def with_places(self, sizes: tuple[int, ...]) -> "SiteShape":
        """Return the shape with other sizes of the places, if there are any."""
        shape = list(self.shape)
        for dim, size in zip(self.layout.places, sizes, strict=False):
            shape[dim - 1] = size
        return self._replace(shape=torch.Size(shape))


def default_layout(n_dims: int) -> Layout:
    """Return the layout that activations with this many dimensions usually have."""
    if n_dims == 3:
        return SEQUENCE
    return Layout(1, tuple(range(2, n_dims)))


@contextlib.contextmanager
def reading_layouts(
    net: nn.Module, sites: Mapping[str, nn.Module]
) -> Iterator[dict[str, SiteShape]]:
    """Determine the shapes at the sites from a pass inside the block.

    Only (B, T, C) and (B, C, L) are ambiguous. The number of channels of the last layer before the
    site determines which dimension holds the channels.
    """
    shapes: dict[str, SiteShape] = {}
    last: list[nn.Module] = []
    activations: dict[str, Tensor]

    def remember(module: nn.Module, inputs: Any, output: Any) -> None:
        last[:] = [module]

    def note(name: str) -> Any:
        def hook(module: nn.Module, inputs: Any, output: Any) -> None:
            h = activations[name]
            shapes[name] = SiteShape(h.shape[1:], _layout(h, last[0] if last else None))

        return hook

    handles = [m.register_forward_hook(remember) for m in net.modules() if _n_channels(m)]
    try:
        with reading(sites) as activations:
            handles += [m.register_forward_hook(note(name)) for name, m in sites.items()]
            yield shapes
    finally:
        for handle in handles:
            handle.remove()


def site_shapes(net: nn.Module, sites: Mapping[str, nn.Module], x: Any) -> dict[str, SiteShape]:
    """Return shape and layout at each site, in the order of a pass in `eval()`."""
    was_training = net.training
    net.eval()
    try:
        with torch.no_grad(), reading_layouts(net, sites) as shapes:
            net(x)
    finally:
        net.train(was_training)
    return shapes


def _layout(h: Tensor, before: nn.Module | None) -> Layout:
    if h.dim() != 3 or before is None:
        return default_layout(h.dim())
    n = _n_channels(before)
    fits_first, fits_last = h.shape[1] == n, h.shape[2] == n
    if fits_first and fits_last:
        return CHANNELS_FIRST if isinstance(before, (nn.Conv1d, nn.BatchNorm1d)) else SEQUENCE
    return CHANNELS_FIRST if fits_first else SEQUENCE


def _n_channels(module: nn.Module) -> int | None:
    """Return the number of output channels of a layer, if its type has one."""
    if isinstance(module, nn.RNNBase):
        return (module.proj_size or module.hidden_size) * (2 if module.bidirectional else 1)
    if isinstance(module, nn.LayerNorm):
        return module.normalized_shape[-1]
    for name in ("out_channels", "out_features", "num_features", "embedding_dim", "embed_dim"):
        n = getattr(module, name, None)
        if isinstance(n, int):
            return n
    return None


def map_sites(net: nn.Module, x: Tensor, last: str | None = None) -> dict[str, torch.Size]:
    """Return the sites with a map (C, H, W), in the order of a pass, up to the one named `last`.

    Without a name they end with the last convolutional map of the network.
    """
    shapes = site_shapes(net, find_sites(net, ["*"]), x)
    maps = {name: found.shape for name, found in shapes.items() if found.layout == MAP}
    if not maps:
        raise LupiError("the network has no site with a map; place a `Site` after a convolution")
    if last is None:
        return maps
    if last not in maps:
        raise LupiError(
            f"site: {last!r} is not a site with a map; sites with a map: {', '.join(maps)}"
        )
    names = list(maps)
    return {name: maps[name] for name in names[: names.index(last) + 1]}
