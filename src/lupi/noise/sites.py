"""Sites: named places of a network where noise can be added or activations can be read.

Every `nn.Dropout` and every `Site` is a site. A site's name is its path in the network, such as
`trunk.site2` or `head.drop1`. Any other layer can be a site if it is named in full, such as
`layer3.1`: the site is its output. `output` is the output of the whole network.

Layouts say which dimensions of activations are channels, and which are places:

| activations | layout | channels | places |
|---|---|---|---|
| vector (B, C) | `VECTOR` | 1 | none |
| sequence (B, T, C): LSTM, transformer | `SEQUENCE` | 2 | words or time steps |
| sequence (B, C, L): `nn.Conv1d` | `CHANNELS_FIRST` | 1 | time steps |
| feature map (B, C, H, W) | `MAP` | 1 | pixels |
"""

import contextlib
import fnmatch
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from lupi.errors import LupiError

DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)
OUTPUT = "output"
"""The site at the output of the network, unless it has a layer of that name."""


class Site(nn.Module):
    """An identity layer that marks a place for noise."""

    def forward(self, h: Tensor) -> Tensor:
        """Return `h` itself."""
        return h


def find_sites(net: nn.Module, patterns: Sequence[str] | None = None) -> dict[str, nn.Module]:
    """Return the sites whose names match one of the patterns, in the network's order.

    Args:
        net: The network.
        patterns: Patterns of sites (`head.*`), or full names of any layers. By default every
            dropout layer, which is what the paper replaces.
    """
    layers = dict(net.named_modules())
    layers.setdefault(OUTPUT, net)
    sites = {name: m for name, m in layers.items() if isinstance(m, (Site, *DROPOUTS))}
    if patterns is None:
        return {name: m for name, m in sites.items() if not isinstance(m, Site)}
    for pattern in patterns:
        if pattern not in layers and not fnmatch.filter(sites, pattern):
            known = ", ".join(sites) or "none: it has no nn.Dropout and no Site"
            raise LupiError(f"no site of the network matches {pattern!r}; its sites: {known}")
    matching = {name for pattern in patterns for name in fnmatch.filter(sites, pattern)}
    return {name: m for name, m in layers.items() if name in matching or name in patterns}


def sites_for_noise(net: nn.Module, patterns: Sequence[str] | None) -> dict[str, nn.Module]:
    """Return the sites as `find_sites` does; raise an error if there are none."""
    sites = find_sites(net, patterns)
    if not sites:
        raise LupiError("the network has no dropout layer; name the `sites` for the noise")
    return sites


def site_module(net: nn.Module, name: str) -> nn.Module:
    """Return the module of a site by its name."""
    is_whole = name == OUTPUT and OUTPUT not in dict(net.named_children())
    return net if is_whole else net.get_submodule(name)


@contextlib.contextmanager
def hooked(modules: Mapping[str, nn.Module], hook: Callable[..., Any]) -> Iterator[None]:
    """Call `hook(name, module, inputs, output)` after each module in passes inside the block.

    What it returns, unless None, replaces the module's output.
    """
    with contextlib.ExitStack() as handles:
        for name, module in modules.items():
            handles.enter_context(module.register_forward_hook(partial(hook, name)))
        yield


@contextlib.contextmanager
def attached(
    sites: Mapping[str, nn.Module], transforms: Mapping[str, Callable[[Tensor], Tensor]]
) -> Iterator[None]:
    """Attach functions to sites in passes inside the block. They replace Bernoulli dropout there.

    Args:
        sites: The result of `find_sites`.
        transforms: Functions of the activations by site name, applied in training; in `eval()` a
            site is the identity.
    """
    rates = {module: module.p for module in sites.values() if isinstance(module, DROPOUTS)}

    def replace(name: str, module: nn.Module, inputs: tuple[Tensor, ...], output: Any) -> Any:
        if not module.training:
            return output
        return transforms[name](_at_site(name, module, inputs, output))

    try:
        for module in rates:
            module.p = 0.0
        with hooked(sites, replace):
            yield
    finally:
        for module, rate in rates.items():
            module.p = rate


@contextlib.contextmanager
def evaluating(net: nn.Module) -> Iterator[None]:
    """Put a network in `eval()` inside the block; parts may have been frozen in it before."""
    modes = {module: module.training for module in net.modules()}
    net.eval()
    try:
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode


def _at_site(name: str, module: nn.Module, inputs: tuple[Tensor, ...], output: Any) -> Tensor:
    """Return the activations at a site: the input of a dropout layer, the output of others."""
    if isinstance(module, DROPOUTS):
        return inputs[0]
    if not isinstance(output, Tensor):
        raise LupiError(
            f"site {name}: {type(module).__name__} returns {type(output).__name__}, not a tensor; "
            "name a layer that returns a tensor, or insert a `Site` after it"
        )
    return output


@contextlib.contextmanager
def reading(sites: Mapping[str, nn.Module]) -> Iterator[dict[str, Tensor]]:
    """Record the activations at the sites in a pass inside a `with` block, without changes.

    The dictionary is filled in the order of the pass; for a dropout layer it contains the
    activations before dropout.
    """
    seen: dict[str, Tensor] = {}

    def read(name: str, module: nn.Module, inputs: tuple[Tensor, ...], output: Any) -> None:
        seen[name] = _at_site(name, module, inputs, output)

    with hooked(sites, read):
        yield seen


@contextlib.contextmanager
def layer_inputs(layer: nn.Module, cut: bool = False) -> Iterator[list[Tensor]]:
    """Collect the inputs of a layer in passes inside the block.

    With `cut`, no gradient flows back through the layer; the collected inputs keep theirs.
    """
    seen: list[Tensor] = []

    def hook(module: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...] | None:
        seen.append(inputs[0])
        return (inputs[0].detach(), *inputs[1:]) if cut else None

    with layer.register_forward_pre_hook(hook):
        yield seen


@contextlib.contextmanager
def layer_outputs(layer: nn.Module) -> Iterator[list[Any]]:
    """Collect the outputs of a layer in passes inside the block."""
    seen: list[Any] = []
    with layer.register_forward_hook(lambda module, inputs, output: seen.append(output)):
        yield seen


def linear_layers(net: nn.Module) -> list[nn.Linear]:
    """Return the linear layers in order; raise an error if there are none."""
    layers = [module for module in net.modules() if isinstance(module, nn.Linear)]
    if not layers:
        raise LupiError(f"this method needs a linear layer; {type(net).__name__} has none")
    return layers


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
    last: nn.Module | None = None

    def remember(name: str, module: nn.Module, inputs: Any, output: Any) -> None:
        nonlocal last
        last = module

    def note(name: str, module: nn.Module, inputs: Any, output: Any) -> None:
        h = _at_site(name, module, inputs, output)
        shapes[name] = SiteShape(h.shape[1:], _layout(h, last))

    layers = {name: module for name, module in net.named_modules() if _n_channels(module)}
    with hooked(layers, remember), hooked(sites, note):
        yield shapes


def site_shapes(net: nn.Module, sites: Mapping[str, nn.Module], x: Any) -> dict[str, SiteShape]:
    """Return shape and layout at each site, in the order of a pass in `eval()`."""
    with evaluating(net), torch.no_grad(), reading_layouts(net, sites) as shapes:
        net(x)
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
