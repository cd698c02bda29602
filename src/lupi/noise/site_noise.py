"""Heteroscedastic dropout at the sites of a network, one noise layer per site."""

import contextlib
import sys
from collections.abc import Iterator, Mapping
from functools import partial

import torch
from torch import Tensor, nn

from lupi.errors import LupiError
from lupi.noise.layer import HeteroscedasticDropout, Variance, bounded
from lupi.noise.sites import SiteShape, attached, site_module


class NoisePass:
    """One training pass of a network with noise."""

    def __init__(self, noise: "SiteNoise", seen: Mapping[str, Tensor], has: Tensor) -> None:
        self._noise, self._seen, self._has = noise, seen, has
        self._variances: dict[str, Variance] = {}
        self._n_checkpoints = _count_checkpoints()

    def at(self, site: str, h: Tensor) -> Tensor:
        """Return the activations at a site with noise."""
        if _count_checkpoints() > self._n_checkpoints:
            raise LupiError(
                f"site {site} is inside activation checkpointing, which would repeat this part of "
                "the pass without its noise: gradients would be wrong. Disable it "
                "for this part, or checkpoint the call of the attached network as a whole"
            )
        seen, layer = self._seen[site], self._noise.at(site)
        if len(h) != len(seen):
            raise LupiError(
                f"site {site}: activations of shape {tuple(h.shape)} for {len(seen)} rows of x*; "
                "rows must be the first dimension (`batch_first=True` of an LSTM)"
            )
        try:
            noisy, self._variances[site] = layer.sample(h, seen, self._has)
        except ValueError as error:
            raise LupiError(f"site {site}: {error}") from error
        return noisy

    def penalty(self) -> Tensor:
        """Return the penalty of each row, (B,), summed over the sites used in the pass."""
        if not self._variances:
            raise LupiError(
                f"the forward pass used no site with noise: {', '.join(self._noise.sites)}; "
                "name sites that the network uses"
            )
        return self._noise.at(next(iter(self._variances))).penalty([*self._variances.values()])


class SiteNoise(nn.ModuleDict):
    """Noise layers by site name. They are not part of the network."""

    def __init__(self, layers: Mapping[str, HeteroscedasticDropout]) -> None:
        super().__init__({_key(site): layer for site, layer in layers.items()})
        self.sites = tuple(layers)

    def at(self, site: str) -> HeteroscedasticDropout:
        """Return the noise layer of a site."""
        layer = self[_key(site)]
        assert isinstance(layer, HeteroscedasticDropout)
        return layer

    @contextlib.contextmanager
    def on(self, net: nn.Module, seen: Mapping[str, Tensor], has: Tensor) -> Iterator[NoisePass]:
        """Add noise at the sites of a network for a training pass inside the block.

        Args:
            net: The network; it does not change outside the block.
            seen: what h* sees at each site, (B, ...).
            has: (B,) bool, True where a row has x*.
        """
        noise_pass = NoisePass(self, seen, has)
        sites = {site: site_module(net, site) for site in self.sites}
        with attached(sites, {site: partial(noise_pass.at, site) for site in sites}):
            yield noise_pass

    def set_strength(self, strength: float) -> None:
        """Scale all variances by a factor in [0, 1], for warm-up."""
        for site in self.sites:
            self.at(site).strength = strength

    @torch.no_grad()
    def logvars(
        self, shapes: Mapping[str, SiteShape], seen: Mapping[str, Tensor], has: Tensor
    ) -> dict[str, Tensor]:
        """Return log h*(x*) at each site for the rows that have x*.

        Args:
            shapes: of the activations at each site.
            seen: what h* sees at each site, (B, ...).
            has: (B,) bool, True where a row has x*.
        """
        logvars = {}
        for site, xstar in seen.items():
            h = has.new_empty(1).expand(len(xstar), *_shape_for(shapes[site], xstar))
            logvars[site] = bounded(self.at(site).variance(h, xstar, has).logvar[has])
        return logvars


def _shape_for(found: SiteShape, xstar: Tensor) -> torch.Size:
    """Return the shape at a site for these rows: texts differ in length from batch to batch."""
    shape = list(found.shape)
    if len(found.places) == 1 and xstar.dim() == 3:
        shape[found.layout.places[0] - 1] = xstar.shape[2]
    return torch.Size(shape)


def _count_checkpoints() -> int:
    """Return how many calls of `torch.utils.checkpoint` this code runs inside."""
    checkpoint = sys.modules.get("torch.utils.checkpoint")
    if checkpoint is None or torch.compiler.is_compiling():
        return 0
    frame, n = sys._getframe(), 0
    while frame.f_back is not None:
        frame = frame.f_back
        n += frame.f_code.co_filename == checkpoint.__file__
    return n


def _key(site: str) -> str:
    """Return a site's name as a key that nn.ModuleDict takes."""
    return site.replace(".", "/")
