"""Heteroscedastic dropout for any network, in any training loop.

The network does not change: noise is added at its sites during the training passes of an
`AttachedNet`, and its weights are separate from those of h*.
"""

import copy
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lupi.core.batch import finite_rows, over_rows
from lupi.errors import LupiError
from lupi.networks.pooling import find_pooling, reading_attention, teach
from lupi.noise import HeteroscedasticDropout, SiteNoise
from lupi.noise.encoders import LazyUnits, lazy_vector_encoder
from lupi.noise.layer import RegionPrior, dropout_variance
from lupi.noise.sites import SiteShape, evaluating, find_sites, reading_layouts, site_module

Inputs = Any
"""Input of a network: a tensor, or a tuple or dict of its arguments."""

Xstar = int | Literal["region"] | nn.Module | Mapping[str, nn.Module]
"""The kind of x* and its network: see `attach`."""


class Attached(NamedTuple):
    """The result of a forward pass of an `AttachedNet`."""

    output: Any
    penalty: Tensor
    """(B,): the weighted penalty of each row, 0 without x*; in `eval()` a single 0."""


def attach(
    net: nn.Module,
    xstar: Xstar,
    sites: Sequence[str] | None = None,
    *,
    example: tuple[Inputs, Tensor] | None = None,
    guide: float | None = None,
    **noise: Any,
) -> "AttachedNet":
    """Add noise whose variance depends on x* at the sites of any network.

        lupi_net = lupi.attach(net, xstar=12)                   # x*: (B, 12)
        output, penalty = lupi_net(x, xstar)
        loss = cross_entropy(output, y) + penalty.mean()
        lupi_net.predict(x)                                     # no noise, no x*

    Args:
        net: The network. It takes x, with rows as the first dimension.
        xstar: What x* is: the length of its vectors, which should have mean 0 and standard
            deviation 1; or `"region"` for maps (B, 1, H, W) over the pixels of an image, or
            (B, 1, T) over the words of a text (also without the 1), with 1 where the label
            comes from and 0 elsewhere; or a network from x* to features (B, n), shared by all
            sites, each of which adds a linear layer; or a dict with the network h* of each site
            (see `HeteroscedasticDropout`).
        sites: Names or patterns (`blocks.*.drop`) of dropout layers, or full names of any
            layers, which get noise on their output. By default every dropout layer.
        example: At least two rows of x and x*, to create all weights now, as
            `DistributedDataParallel` needs. By default the first batch creates them.
        guide: For a region and a network with `lupi.AttentionPooling`: weight of the cross-entropy
            between region and attention, which is added to the penalty; x* then teaches where to
            look. There is noise only if `sites` are named.
        noise: Options of `HeteroscedasticDropout`, such as `prior`, `draw` and `beta`. The
            default prior is the variance of the dropout layer that the noise replaces; for a
            region it is fixed, `RegionPrior(inside=0, outside=1)`.

    Returns:
        A module that trains the network with noise and predicts without it.
    """
    if xstar == "region":
        _check_region_noise(noise)
    if guide is not None:
        if xstar != "region":
            raise LupiError("attach: guide needs x* that marks a region: xstar='region'")
        find_pooling(net, "attach: guide")
        sites = sites or ()
    encoder = xstar if isinstance(xstar, nn.Module) else None
    layers = {}
    for site, hstar in _hstars(net, xstar, sites).items():
        usual = REGION_PRIOR if xstar == "region" else dropout_variance(site_module(net, site))
        try:
            layers[site] = HeteroscedasticDropout(hstar, **{"prior": usual, **noise})
        except (TypeError, ValueError, KeyError) as error:
            raise LupiError(f"attach: {error}") from None
    shape = xstar if isinstance(xstar, int | str) else None
    attached_net = AttachedNet(net, SiteNoise(layers), encoder, shape, guide or 0.0)
    return attached_net if example is None else attached_net.prepare(*example)


REGION_PRIOR = RegionPrior(inside=0, outside=1)


def _check_region_noise(noise: Mapping[str, Any]) -> None:
    """Raise an error for options without effect on the noise of a region."""
    for name in ("beta", "penalty", "budget"):
        if name in noise:
            raise LupiError(f"attach: {name} has no effect on a region, which trains no h*")
    if not callable(noise.get("prior", REGION_PRIOR)):
        raise LupiError(
            f"attach: prior is {noise['prior']!r}, the same at all places; for a region use "
            "lupi.RegionPrior(inside=0, outside=1), or another function of x*"
        )


def _hstars(
    net: nn.Module, xstar: Xstar, sites: Sequence[str] | None
) -> Mapping[str, nn.Module | None]:
    """Return the network h* of each site: None for a region, a layer after a shared encoder."""
    if isinstance(xstar, Mapping):
        if sites is not None:
            raise LupiError("attach: a dict of networks already names the sites; omit `sites`")
        found = find_sites(net, tuple(xstar))
        if patterns := set(xstar) - set(found):
            raise LupiError(
                f"attach: {min(patterns)!r} is a pattern; use the full name of each site"
            )
        return {site: xstar[site] for site in found}
    found = find_sites(net, sites)
    if not found and sites is None:
        raise LupiError(
            f"attach: {type(net).__name__} has no dropout layer (`F.dropout` can't be found); "
            "name the layers that get noise on their output: `sites`"
        )
    if xstar == "region":
        return dict.fromkeys(found)
    if isinstance(xstar, nn.Module):
        return {site: LazyUnits() for site in found}
    if isinstance(xstar, int) and xstar >= 1:
        return {site: lazy_vector_encoder(xstar) for site in found}
    raise LupiError(
        f"attach: xstar is {xstar!r}; expected the length of the vectors x*, 'region', a network "
        "of x*, or a dict of networks by site"
    )


class AttachedNet(nn.Module):
    """A network with noise at its sites whose variance depends on x*; created by `attach`."""

    def __init__(
        self,
        net: nn.Module,
        noise: SiteNoise,
        encoder: nn.Module | None = None,
        xstar: int | str | None = None,
        guide: float = 0.0,
    ) -> None:
        super().__init__()
        self.net = net
        self.noise = noise
        self.encoder = encoder
        self.xstar = xstar
        """The length of the vectors x*, or `region`; None if x* is the input of a network."""
        self.guide = guide
        """Weight of the teaching of attention; 0: none."""
        self._shapes: dict[str, SiteShape] = {}
        self._has_warned = False

    def forward(
        self, x: Inputs, xstar: Tensor | None = None, has_xstar: Tensor | None = None
    ) -> Attached:
        """Return output and penalty, with noise in training; in `eval()` x* has no effect.

        Args:
            x: A tensor, or a tuple or dict of the network's arguments.
            xstar: (B, ...). A row that is not finite counts as missing.
            has_xstar: (B,) bool, True for rows with x*; by default all rows have x*.
        """
        if not self.training:
            return Attached(_call(self.net, x), torch.zeros(1))
        if xstar is None:
            raise LupiError(
                "training needs x*: mark rows without x* by NaN or `has_xstar`; to predict, call "
                "predict(x), or call eval() first"
            )
        sites = self._sites()
        if sites and not any(module.training for module in sites.values()):
            raise LupiError(
                f"{type(self.net).__name__} is in eval() mode, where it gets no noise (as "
                "`from_pretrained` returns it): call .train() on the attached network first"
            )
        seen, has = self._seen(xstar, has_xstar)
        if not self._shapes:
            self._prepare(x, seen, has)
        inputs = dict.fromkeys(self.noise.sites, seen)
        with reading_attention(self.net) as attended, self.noise.on(self.net, inputs, has) as noise:
            output = _call(self.net, x)
        penalty = noise.penalty() if self.noise.sites else torch.zeros(len(has), device=has.device)
        if self.guide:
            region = seen.where(has.view(-1, *[1] * (seen.dim() - 1)), 0.0)
            taught = torch.stack([teach(one, region) for one in attended]).mean(0)
            penalty = penalty + self.guide * taught * has
        self._warn_if_not_finite("output", _logits(output), lambda: self._cause_of_output(x))
        return Attached(output, penalty)

    def loss(
        self,
        x: Inputs,
        y: Tensor,
        xstar: Tensor,
        criterion: Callable[[Any, Tensor], Tensor] | None = None,
        has_xstar: Tensor | None = None,
    ) -> Tensor:
        """Return the criterion of the noisy output plus the mean penalty of the rows with x*.

        The output is its `logits` if it has any, as those of Hugging Face. The default criterion is
        cross-entropy; with one output per row, binary cross-entropy of targets 0 and 1.
        """
        output, penalty = self(x, xstar, has_xstar)
        n = self._seen_rows(xstar, has_xstar).sum().clamp(min=1)
        output = _logits(output)
        total: Tensor = (criterion or _cross_entropy)(output, y) + penalty.sum() / n
        self._warn_if_not_finite("loss", total, lambda: self._cause_of_loss(y))
        return total

    @torch.no_grad()
    def predict(self, x: Inputs) -> Any:
        """Return the output without noise, in any mode. x* can't be passed."""
        with evaluating(self.net):
            return _call(self.net, x)

    def student(self) -> nn.Module:
        """Return a copy of the plain network, without anything about x*."""
        return copy.deepcopy(self.net)

    def logvars(self, xstar: Tensor, has_xstar: Tensor | None = None) -> dict[str, Tensor]:
        """Return log h*(x*) at each site for the rows with x*, after a first batch.

        If it is the same for all rows, the noise has collapsed: x* has no effect.
        """
        seen, has = self._seen(xstar, has_xstar)
        return self.noise.logvars(self._shapes, dict.fromkeys(self._shapes, seen), has)

    def prepare(self, x: Inputs, xstar: Tensor) -> Self:
        """Determine the shapes at the sites, and create the weights that depend on them.

        Otherwise the first batch does this, for the sites it passes.
        """
        self._prepare(x, *self._seen(xstar, None))
        if unseen := set(self.noise.sites) - set(self._shapes):
            raise LupiError(
                f"site {min(unseen)} was not used in the forward pass; choose other `sites`"
            )
        return self

    @torch.no_grad()
    def _prepare(self, x: Inputs, seen: Tensor, has: Tensor) -> None:
        if isinstance(self.xstar, int):
            _warn_of_raw_units(seen[has])
        with reading_layouts(self.net, self._sites()) as shapes:
            self.predict(x)
        for site, found in shapes.items():
            if self.xstar == "region" and not found.places:
                raise LupiError(
                    f"site {site}: its activations are vectors {tuple(found.shape)}, which have no "
                    "places for a region; name `sites` before the network pools or flattens"
                )
            if self.xstar == "region" and len(found.places) != seen.dim() - 2:
                expected = "(rows, 1, height, width)" if len(found.places) == 2 else "(rows, words)"
                raise LupiError(
                    f"site {site}: its activations are {tuple(found.shape)} per row, but x* is "
                    f"{tuple(seen.shape)}; expected a region {expected}"
                )
            layer = self.noise.at(site)
            layer.layout = layer.layout or found.layout
            for module in layer.modules():
                if isinstance(module, LazyUnits):
                    module.out_features = found.n_channels
            h = seen.new_empty(1).expand(len(seen), *found.shape)
            try:
                layer.variance(h, seen, has)
            except ValueError as error:
                raise LupiError(f"site {site}: {error}") from error
        self._shapes = shapes

    def _warn_if_not_finite(self, name: str, values: Any, cause: Callable[[], str]) -> None:
        """Warn of NaN or infinity once, with its cause and what to do."""
        if self._has_warned or torch.compiler.is_compiling() or not _bad_rows(values):
            return
        self._has_warned = True
        warnings.warn(f"attach: the {name} is NaN or infinite: {cause()}", stacklevel=5)

    def _cause_of_output(self, x: Inputs) -> str:
        for name, weight in self.named_parameters():
            if not weight.isfinite().all():
                return (
                    f"so are weights ({name}), since an earlier step diverged. Start again with a "
                    "smaller learning rate, or clip gradients"
                )
        parts = {"x": x}
        if isinstance(x, Mapping | tuple):
            several = x if isinstance(x, Mapping) else dict(enumerate(x))
            parts = {f"x[{key!r}]": part for key, part in several.items()}
        for name, part in parts.items():
            if rows := _bad_rows(part):
                return f"{name} is not finite in {rows}. Replace these values, or omit the rows"
        if rows := _bad_rows(_logits(self.predict(x))):
            return (
                f"x is finite, but not the network's output without noise, in {rows}. Scale x, or "
                "compute in float32"
            )
        return "without noise it is finite. Reduce the noise: a smaller `prior`"

    @staticmethod
    def _cause_of_loss(y: Tensor) -> str:
        if rows := _bad_rows(y):
            return f"y is not finite in {rows}. Omit these rows"
        return "output and y are finite. Check the `criterion`, and that y suits it"

    def _sites(self) -> dict[str, nn.Module]:
        return {site: site_module(self.net, site) for site in self.noise.sites}

    def _seen(self, xstar: Tensor, has_xstar: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the noise's input from x*, and the rows (B,) that have x*."""
        if self.xstar == "region":
            xstar = _region(xstar)
        if isinstance(self.xstar, int) and xstar.shape[1:] != (self.xstar,):
            raise LupiError(f"x* is {tuple(xstar.shape)}; expected (rows, {self.xstar})")
        has = self._seen_rows(xstar, has_xstar)
        if self.xstar == "region" and not torch.compiler.is_compiling():
            wrong = ((xstar < 0) | (xstar > 1)) & over_rows(has, xstar)
            if wrong.any():
                raise LupiError(
                    f"x* has values from {xstar[has].min():g} to {xstar[has].max():g}; a region "
                    "has 0 to 1: 1 where the label comes from"
                )
        if self.encoder is None:
            return xstar, has
        return self.encoder(xstar.where(over_rows(has, xstar), 0)), has

    def _seen_rows(self, xstar: Tensor, has_xstar: Tensor | None) -> Tensor:
        has = finite_rows(xstar)
        return has if has_xstar is None else has & has_xstar


def _region(xstar: Tensor) -> Tensor:
    """Return regions as (B, 1, T) or (B, 1, H, W), also if they are given without the 1."""
    if xstar.dim() == 2 or (xstar.dim() == 3 and xstar.shape[1] != 1):
        xstar = xstar[:, None]
    if xstar.dim() not in (3, 4) or xstar.shape[1] != 1:
        raise LupiError(
            f"x* is {tuple(xstar.shape)}; expected a region: (rows, 1, height, width) for images, "
            "(rows, 1, words) for texts"
        )
    return xstar


RAW_ABOVE = 5.0
"""Root mean square of a column of x* above which it is taken for one in raw units."""


def _warn_of_raw_units(xstar: Tensor) -> None:
    """Warn if a column of x* (n, D) is far from mean 0 and standard deviation 1."""
    size = xstar.double().square().mean(0).sqrt()
    if len(xstar) and size.max() > RAW_ABOVE:
        column = int(size.argmax())
        mean, std = xstar[:, column].double().mean(), xstar[:, column].double().std(correction=0)
        warnings.warn(
            f"column {column} of x* has mean {mean:.3g} and standard deviation {std:.3g}: noise "
            "depends on the units of x*. Scale each column to mean 0 and standard deviation 1",
            stacklevel=4,
        )


def _cross_entropy(output: Tensor, y: Tensor) -> Tensor:
    if output.dim() > 1 and output.shape[1] > 1:
        return F.cross_entropy(output, y)
    if not ((y == 0) | (y == 1)).all():
        raise LupiError(
            f"one output per row, and targets from {y.min():g} to {y.max():g}: pass a `criterion`, "
            "such as F.mse_loss; without one, targets are 0 and 1"
        )
    return F.binary_cross_entropy_with_logits(output.flatten(), y.flatten().to(output.dtype))


def _bad_rows(values: Any) -> str:
    """Return which rows of a tensor are not finite, in words; empty if none."""
    if not isinstance(values, Tensor) or values.isfinite().all():
        return ""
    bad = (~values.isfinite()).reshape(len(values) if values.dim() else 1, -1).any(1)
    return f"{int(bad.sum())} of {len(bad)} rows (the first is {int(bad.byte().argmax())})"


def _logits(output: Any) -> Any:
    return getattr(output, "logits", output)


def _call(net: nn.Module, x: Inputs) -> Any:
    if isinstance(x, Mapping):
        return net(**x)
    return net(*x) if isinstance(x, tuple) else net(x)
