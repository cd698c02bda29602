"""Sites: the named places of a network where noise may enter or an activation may be read.

Every `nn.Dropout` is a site, and so is every `Site` placed by hand. A site's name is its path
in the network, such as `trunk.site2` or `head.drop1`. Any other layer becomes one when it is named
in full, such as `layer3.1`: the site is then behind it.
"""

import contextlib
import fnmatch
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from lupi.errors import LupiError

DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)


class Site(nn.Module):
    """A place for noise: the identity, unless something is attached."""

    def forward(self, h: Tensor) -> Tensor:
        """Return `h` itself."""
        return h


def find_sites(net: nn.Module, patterns: Sequence[str] | None = None) -> dict[str, nn.Module]:
    """Return the sites whose names match one of the patterns (`head.*`), in order.

    Without patterns, return every dropout layer: what the paper replaces. A name without
    wildcards may be that of any layer.
    """
    layers = dict(net.named_modules())
    sites = {name: m for name, m in layers.items() if isinstance(m, (Site, *DROPOUTS))}
    if patterns is None:
        return {name: m for name, m in sites.items() if not isinstance(m, Site)}
    for pattern in patterns:
        if pattern not in layers and not fnmatch.filter(sites, pattern):
            known = ", ".join(sites) or "none: it has no nn.Dropout and no Site"
            raise LupiError(f"no site of the network matches {pattern!r}; its sites: {known}")
    matching = {name for pattern in patterns for name in fnmatch.filter(sites, pattern)}
    return {name: m for name, m in layers.items() if name in matching or name in patterns}


class Attachment:
    """Functions attached to sites. Where one is attached, Bernoulli dropout rests.

    Args:
        sites: what `find_sites` returned.
        transforms: for each site's name, what to do with the activations there in training;
            in `eval()` a site is the identity.
    """

    def __init__(
        self, sites: Mapping[str, nn.Module], transforms: Mapping[str, Callable[[Tensor], Tensor]]
    ) -> None:
        self._sites = dict(sites)
        self._transforms = dict(transforms)
        self._rates = {name: m.p for name, m in sites.items() if isinstance(m, DROPOUTS)}
        self._handles: list[torch.utils.hooks.RemovableHandle] = []
        self.attach()

    def attach(self) -> None:
        """Put the functions in place."""
        for name, module in self._sites.items():
            if isinstance(module, DROPOUTS):
                module.p = 0.0
            hook = partial(_replace, name, self._transforms[name])
            self._handles.append(module.register_forward_hook(hook))

    def detach(self) -> None:
        """Take the functions away: the network is as it was."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        for name, module in self._sites.items():
            if isinstance(module, DROPOUTS):
                module.p = self._rates[name]

    @contextlib.contextmanager
    def detached(self) -> Iterator[None]:
        """Take the functions away inside a `with` block."""
        self.detach()
        try:
            yield
        finally:
            self.attach()


def _replace(
    name: str,
    transform: Callable[[Tensor], Tensor],
    module: nn.Module,
    inputs: tuple[Tensor, ...],
    output: Any,
) -> Any:
    return transform(_at_site(name, module, inputs, output)) if module.training else output


def _at_site(name: str, module: nn.Module, inputs: tuple[Tensor, ...], output: Any) -> Tensor:
    """Return the activations at a site: before dropout, or behind any other layer."""
    if isinstance(module, DROPOUTS):
        return inputs[0]
    if not isinstance(output, Tensor):
        raise LupiError(
            f"site {name}: {type(module).__name__} returns a {type(output).__name__}, no tensor; "
            "name a layer that returns one, or place a `Site` behind it"
        )
    return output


@contextlib.contextmanager
def attached(
    sites: Mapping[str, nn.Module], transforms: Mapping[str, Callable[[Tensor], Tensor]]
) -> Iterator[None]:
    """Attach functions to sites for the passes inside a `with` block: see `Attachment`."""
    attachment = Attachment(sites, transforms)
    try:
        yield
    finally:
        attachment.detach()


@contextlib.contextmanager
def reading(sites: Mapping[str, nn.Module]) -> Iterator[dict[str, Tensor]]:
    """Read what comes to the sites in a pass inside a `with` block, and change nothing.

    The dictionary fills in the order in which the pass comes by; at a dropout layer it holds
    the activations before dropout.
    """
    seen: dict[str, Tensor] = {}

    def read(name: str, module: nn.Module, inputs: tuple[Tensor, ...], output: Any) -> None:
        seen[name] = _at_site(name, module, inputs, output)

    handles = [m.register_forward_hook(partial(read, name)) for name, m in sites.items()]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


def site_shapes(net: nn.Module, sites: Mapping[str, nn.Module], x: Any) -> dict[str, torch.Size]:
    """Return the shape of one example's activations at each site, by a pass in `eval()`."""
    was_training = net.training
    net.eval()
    try:
        with torch.no_grad(), reading(sites) as seen:
            net(x)
    finally:
        net.train(was_training)
    return {name: h.shape[1:] for name, h in seen.items()}


def map_sites(net: nn.Module, x: Tensor, last: str | None = None) -> dict[str, torch.Size]:
    """Return the sites with a map (C, H, W), in the order of a pass, up to the one named `last`.

    Without a name they end with the last convolutional map of the network.
    """
    shapes = site_shapes(net, find_sites(net, ["*"]), x)
    maps = {name: shapes[name] for name in shapes if len(shapes[name]) == 3}
    if not maps:
        raise LupiError("the network has no site with a map; place a `Site` after a convolution")
    if last is None:
        return maps
    if last not in maps:
        raise LupiError(f"site: {last!r} is no site with a map; those with one: {', '.join(maps)}")
    names = list(maps)
    return {name: maps[name] for name in names[: names.index(last) + 1]}
