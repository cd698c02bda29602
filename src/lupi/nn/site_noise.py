"""Heteroscedastic dropout at the sites of a network: a layer of noise for each."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from lupi.nn.noise import HeteroscedasticDropout, bounded


class SiteNoise(nn.ModuleDict):
    """Layers of noise by the name of their site. They are no part of the network."""

    def __init__(self, drops: Mapping[str, HeteroscedasticDropout]) -> None:
        super().__init__({_key(site): drop for site, drop in drops.items()})
        self.sites = tuple(drops)

    def at(self, site: str) -> HeteroscedasticDropout:
        """Return the layer of a site."""
        drop = self[_key(site)]
        assert isinstance(drop, HeteroscedasticDropout)
        return drop

    def penalty(self) -> Tensor:
        """Return the sum of the penalties at the sites that the last training pass came by."""
        drops = [self.at(site) for site in self.sites]
        passed = [drop for drop in drops if drop.has_passed]
        return torch.stack([drop.penalty() for drop in passed or drops]).sum()

    def forget(self) -> None:
        """Forget the last training pass, as the next may come by other sites."""
        for site in self.sites:
            self.at(site).forget()

    @torch.no_grad()
    def logvars(
        self, shapes: Mapping[str, Sequence[int]], inputs: Mapping[str, Tensor], has: Tensor
    ) -> dict[str, Tensor]:
        """Return log h*(x*) at each site for the rows that have x*.

        Args:
            shapes: of one example's activations at each site.
            inputs: what h* sees at each site, (B, ...).
            has: (B,) bool, True where a row has x*.
        """
        out = {}
        for site, seen in inputs.items():
            h = has.new_empty(1).expand(len(seen), *shapes[site])
            out[site] = bounded(self.at(site).variances(h, seen, has)[0][has])
        return out


def _key(site: str) -> str:
    """Return a site's name as a key that nn.ModuleDict takes."""
    return site.replace(".", "/")
