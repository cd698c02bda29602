"""Sites: the named places of a network where noise may enter or an activation may be read.

Every `nn.Dropout` is a site, and so is every `Site` placed by hand. A site's name is its path
in the network, such as `trunk.site2` or `head.drop1`.
"""

import contextlib
import fnmatch
from collections.abc import Callable, Iterator, Mapping, Sequence
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

    Without patterns, return every dropout layer: what the paper replaces.
    """
    sites = {name: m for name, m in net.named_modules() if isinstance(m, (Site, *DROPOUTS))}
    if patterns is None:
        return {name: m for name, m in sites.items() if not isinstance(m, Site)}
    for pattern in patterns:
        if not fnmatch.filter(sites, pattern):
            known = ", ".join(sites) or "none: it has no nn.Dropout and no Site"
            raise LupiError(f"no site of the network matches {pattern!r}; its sites: {known}")
    return {n: m for n, m in sites.items() if any(fnmatch.fnmatch(n, p) for p in patterns)}


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
            self._handles.append(module.register_forward_hook(_replace(self._transforms[name])))

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


def _replace(transform: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    def hook(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        return transform(inputs[0]) if module.training else output

    return hook


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
    handles = [
        module.register_forward_hook(
            lambda m, inputs, output, name=name: seen.__setitem__(name, inputs[0])
        )
        for name, module in sites.items()
    ]
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
