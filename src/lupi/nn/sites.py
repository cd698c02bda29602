"""Sites: named places of a network where noise can be added or activations can be read.

Every `nn.Dropout` and every `Site` is a site. A site's name is its path in the network, such as
`trunk.site2` or `head.drop1`. Any other layer can be a site if it is named in full, such as
`layer3.1`: the site is its output. `output` is the output of the whole network.
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


def site_module(net: nn.Module, name: str) -> nn.Module:
    """Return the module of a site by its name."""
    is_whole = name == OUTPUT and OUTPUT not in dict(net.named_children())
    return net if is_whole else net.get_submodule(name)


class Attachment:
    """Functions attached to sites. They replace the Bernoulli dropout there.

    Args:
        sites: The result of `find_sites`.
        transforms: Functions of the activations by site name, applied in training; in `eval()` a
            site is the identity.
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
        """Attach the functions."""
        for name, module in self._sites.items():
            if isinstance(module, DROPOUTS):
                module.p = 0.0
            hook = partial(_replace, name, self._transforms[name])
            self._handles.append(module.register_forward_hook(hook))

    def detach(self) -> None:
        """Remove the functions."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        for name, module in self._sites.items():
            if isinstance(module, DROPOUTS):
                module.p = self._rates[name]

    @contextlib.contextmanager
    def detached(self) -> Iterator[None]:
        """Remove the functions inside a `with` block."""
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
    """Record the activations at the sites in a pass inside a `with` block, without changes.

    The dictionary is filled in the order of the pass; for a dropout layer it contains the
    activations before dropout.
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
