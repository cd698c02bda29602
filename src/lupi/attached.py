"""Heteroscedastic dropout for a network that was written elsewhere, in any training loop.

The network stays as it is: noise acts at its sites during the training passes of an `AttachedNet`,
and its weights and those of h* are kept apart.
"""

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lupi.errors import LupiError
from lupi.nn.encoders import LazyUnits, lazy_vector_encoder
from lupi.nn.noise import HeteroscedasticDropout, Missing, Norm, Prior, Reading, Reduce
from lupi.nn.site_noise import SiteNoise
from lupi.nn.sites import attached, find_sites
from lupi.nn.sites import reading as reading_at

Inputs = Any
"""What a network takes: a tensor, or a tuple or dict of its arguments."""


def attach(
    net: nn.Module,
    xstar: int | nn.Module | Mapping[str, nn.Module],
    sites: Sequence[str] | None = None,
    *,
    example: tuple[Inputs, Tensor] | None = None,
    prior: Prior = 1.0,
    beta: float = 1.0,
    norm: Norm = "l2",
    reduce: Reduce = "mean",
    missing: Missing = "mean",
    shared_dims: Sequence[int] = (),
    reading: Reading = "paper",
) -> "AttachedNet":
    """Let x* set the variance of noise at the sites of any network.

        lupi_net = lupi.attach(net, xstar=12)                   # x*: (B, 12)
        loss = cross_entropy(lupi_net(x, xstar), y) + lupi_net.penalty()
        lupi_net.predict(x)                                     # no noise, no x*

    Args:
        net: takes x, rows first.
        xstar: the length of the vectors x*; or a network from x* to features (B, n), which all
            sites share, each with a linear layer of its own behind it; or the whole network h*
            of each site by the site's name (see `HeteroscedasticDropout`).
        sites: names or patterns (`blocks.*.drop`); by default every dropout layer. A layer
            named in full gets noise on its output.
        example: two rows or more of x and of x*. Without it, widths are found at the first
            batch: fine in a plain loop, too late for what wants every weight at once (DDP).
        prior: see `HeteroscedasticDropout`, as for all that follows.
        beta: weight of the penalty.
        norm: of the penalty.
        reduce: of the penalty, over units.
        missing: what rows without x* get.
        shared_dims: dimensions that share one draw, such as 1 for the time in (B, T, D).
        reading: the paper's, or the authors' code.
    """
    encoder = xstar if isinstance(xstar, nn.Module) else None
    drops = {
        site: HeteroscedasticDropout(
            hstar,
            prior=prior,
            beta=beta,
            norm=norm,
            reduce=reduce,
            missing=missing,
            shared_dims=shared_dims,
            reading=reading,
        )
        for site, hstar in _hstars(net, xstar, sites).items()
    }
    n_xstar = xstar if isinstance(xstar, int) else None
    attached_net = AttachedNet(net, SiteNoise(drops), encoder, n_xstar)
    return attached_net if example is None else attached_net.prepare(*example)


def _hstars(
    net: nn.Module, xstar: int | nn.Module | Mapping[str, nn.Module], sites: Sequence[str] | None
) -> dict[str, nn.Module]:
    """Return the network h* of each site; behind a shared encoder, what follows it."""
    if isinstance(xstar, Mapping):
        if sites is not None:
            raise LupiError("attach: a dict of networks names the sites itself; leave `sites` out")
        found = find_sites(net, tuple(xstar))
        if patterns := set(xstar) - set(found):
            raise LupiError(f"attach: {min(patterns)!r} is a pattern; name each site in full")
        return {site: xstar[site] for site in found}
    found = find_sites(net, sites)
    if not found:
        raise LupiError(
            f"attach: {type(net).__name__} has no dropout layer (dropout by a function can't be "
            "found); name layers behind which noise shall enter: `sites`"
        )
    if isinstance(xstar, nn.Module):
        return {site: LazyUnits() for site in found}
    if isinstance(xstar, int) and xstar >= 1:
        return {site: lazy_vector_encoder(xstar) for site in found}
    raise LupiError(
        f"attach: xstar is {xstar!r}; expected the length of the vectors x*, a network of x*, or a "
        "dict of networks by site"
    )


class AttachedNet(nn.Module):
    """A network, and noise at its sites whose variance x* sets. `attach` makes one."""

    def __init__(
        self,
        net: nn.Module,
        noise: SiteNoise,
        encoder: nn.Module | None = None,
        n_xstar: int | None = None,
    ) -> None:
        super().__init__()
        self.net = net
        self.noise = noise
        self.encoder = encoder
        self.n_xstar = n_xstar
        self._shapes: dict[str, torch.Size] = {}

    def forward(
        self, x: Inputs, xstar: Tensor | None = None, has_xstar: Tensor | None = None
    ) -> Any:
        """Return the network's output, under noise in training; in `eval()` x* does not matter.

        Args:
            x: a tensor, or a tuple or dict of the network's arguments.
            xstar: (B, ...). A row that is not finite counts as missing.
            has_xstar: (B,) bool, True where a row has x*; by default all have.
        """
        if not self.training:
            return _call(self.net, x)
        if xstar is None:
            raise LupiError(
                "training takes x*: mark rows without it by NaN or `has_xstar`; to predict, call "
                "predict(x), or eval() before"
            )
        self.noise.forget()
        seen, has = self._seen(xstar, has_xstar)
        transforms = {site: partial(self._noisy, site, seen, has) for site in self.noise.sites}
        with attached(self._sites(), transforms):
            return _call(self.net, x)

    def penalty(self) -> Tensor:
        """Return beta * ||log h*(x*) - log h0|| of the last training pass, summed over sites."""
        return self.noise.penalty()

    def loss(
        self,
        x: Inputs,
        y: Tensor,
        xstar: Tensor,
        criterion: Callable[[Any, Tensor], Tensor] = F.cross_entropy,
        has_xstar: Tensor | None = None,
    ) -> Tensor:
        """Return the criterion of output and y under noise, plus the penalty."""
        return criterion(self(x, xstar, has_xstar), y) + self.penalty()

    @torch.no_grad()
    def predict(self, x: Inputs) -> Any:
        """Return the output without noise, whatever the mode. x* can't be passed."""
        modes = {module: module.training for module in self.net.modules()}
        self.net.eval()
        try:
            return _call(self.net, x)
        finally:
            for module, mode in modes.items():  # parts may be frozen in eval()
                module.training = mode

    def student(self) -> nn.Module:
        """Return a copy of the plain network, with no trace of x*."""
        return copy.deepcopy(self.net)

    def logvars(self, xstar: Tensor, has_xstar: Tensor | None = None) -> dict[str, Tensor]:
        """Return log h*(x*) at each site for the rows that have x*, after a first batch.

        Where it is the same for all rows, the noise has collapsed: x* no longer enters.
        """
        seen, has = self._seen(xstar, has_xstar)
        return self.noise.logvars(self._shapes, dict.fromkeys(self._shapes, seen), has)

    @torch.no_grad()
    def prepare(self, x: Inputs, xstar: Tensor) -> Self:
        """Make the weights whose number the sites decide. The first batch would do the same."""
        with reading_at(self._sites()) as activations:
            self.predict(x)
        if unseen := set(self.noise.sites) - set(activations):
            raise LupiError(f"no pass came by site {min(unseen)}; name those that count: `sites`")
        seen, has = self._seen(xstar, None)
        for site, h in activations.items():
            with _naming(site):
                self._drop_for(site, seen, h).variances(h, seen, has)
        return self

    def _sites(self) -> dict[str, nn.Module]:
        return {site: self.net.get_submodule(site) for site in self.noise.sites}

    def _seen(self, xstar: Tensor, has_xstar: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return what the noise sees of x*, and the rows (B,) that have it."""
        if self.n_xstar is not None and xstar.shape[1:] != (self.n_xstar,):
            raise LupiError(f"x* is {tuple(xstar.shape)}; expected (rows, {self.n_xstar})")
        has = torch.isfinite(xstar).flatten(1).all(1)
        if has_xstar is not None:
            has = has & has_xstar
        if self.encoder is None:
            return xstar, has
        return self.encoder(xstar.where(has.view(-1, *[1] * (xstar.dim() - 1)), 0)), has

    def _noisy(self, site: str, seen: Tensor, has: Tensor, h: Tensor) -> Tensor:
        with _naming(site):
            noisy: Tensor = self._drop_for(site, seen, h)(h, seen, has)
        return noisy

    def _drop_for(self, site: str, seen: Tensor, h: Tensor) -> HeteroscedasticDropout:
        """Return the noise of a site, and tell it how many units its activations `h` have."""
        if len(h) != len(seen):
            raise ValueError(
                f"activations of shape {tuple(h.shape)} for {len(seen)} rows of x*; rows must be "
                "the first dimension (`batch_first=True` of an LSTM)"
            )
        drop = self.noise.at(site)
        for layer in drop.modules():
            if isinstance(layer, LazyUnits):
                layer.n_out = h.shape[1 if h.dim() > 3 else -1]  # (B, C, H, W), (B, T, D), (B, D)
        self._shapes[site] = h.shape[1:]
        return drop


@contextlib.contextmanager
def _naming(site: str) -> Iterator[None]:
    """Say at which site something does not fit."""
    try:
        yield
    except ValueError as error:
        raise LupiError(f"site {site}: {error}") from error


def _call(net: nn.Module, x: Inputs) -> Any:
    if isinstance(x, Mapping):
        return net(**x)
    return net(*x) if isinstance(x, tuple) else net(x)
