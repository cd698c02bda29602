"""Heteroscedastic dropout: multiplicative noise whose variance is a function of x*.

    z = h * (1 + sigma * eps),   eps ~ N(0, 1),   log sigma^2 = log h0(x*) + h*(x*)
    loss = task's loss + beta * D(h*(x*))

h0 is the prior variance, h* a network on x*, D the divergence from the prior. Lambert, Sener,
Savarese: "Deep Learning under Privileged Information Using Heteroscedastic Dropout", CVPR 2018.
The file reads from the noise (what shares a draw) over its variance (budget, rows without x*) to
the penalty, and the layer that combines them.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from lupi.core.batch import finite_rows, over_rows
from lupi.errors import LupiError
from lupi.noise.sites import DROPOUTS, Layout, SiteShape, default_layout
from lupi.settings import Settings

Draw = Literal["unit", "place", "channel", "example"]
"""unit: one draw per entry (the paper). place: one for all channels of a place. channel: one for
all places of a channel. example: one for the whole example."""
Distribution = Literal["gaussian", "bernoulli"]
Missing = Literal["mean", "prior", "none"]
Budget = Literal["none", "example", "batch"]
PenaltyName = Literal["kl", "l2"]

LOGVAR_MIN, LOGVAR_MAX = -10.0, 7.0
"""Bounds of the log-variance of the noise: variances of 4.5e-5 and 1100."""
LOGVAR_LIMIT = 50.0
"""Bounds of the log-variance in the penalty, which pulls values back into the bounds above."""
XSTAR_MAX = 1e6
"""x* is clipped to this before h*, so that no finite input overflows."""
STEEPEST = 10.0
"""The KL is linear beyond this, so that its gradient stays finite."""


# The noise


def add_noise(
    h: Tensor,
    logvar: Tensor,
    layout: Layout,
    draw: Draw | None = None,
    distribution: Distribution = "gaussian",
) -> Tensor:
    """Return activations under noise; with Gaussian draws it is differentiable in both tensors.

        gaussian:   z = h * (1 + sigma * eps),      eps ~ N(0, 1)
        bernoulli:  z = h * keep / (1 - p),         keep = [u >= p],  u ~ U(0, 1),  p = v / (1 + v)

    Both have mean h and variance v = sigma^2 times h^2. One draw per unit
    averages out if a network sums over places: the variance of sum_j w_j h_j is then
    v * sum_j (w_j h_j)^2, but v * (sum_j w_j h_j)^2 with one draw for all places, which is large
    if the network relies on those places.

    Args:
        h: activations, (B, ...).
        logvar: log of the variance, broadcastable to `h`.
        layout: of `h`.
        draw: what shares a draw; by default `channel` if there are places, otherwise `unit`.
        distribution: of the draws.
    """
    shape = list(h.shape)
    for dim in shared_dims(draw, layout):
        shape[dim] = 1
    # Reduced precision gets the draws of full precision.
    like = h.new_empty(shape, dtype=torch.promote_types(h.dtype, torch.float32))
    if distribution == "bernoulli":
        drop_rate = torch.sigmoid(logvar)  # v / (1 + v)
        kept = torch.rand_like(like) >= drop_rate
        return h * (kept / (1 - drop_rate)).to(h.dtype)
    scaled = (torch.exp(0.5 * logvar) * torch.randn_like(like)).to(h.dtype)
    return torch.addcmul(h, h, scaled)


def shared_dims(draw: Draw | None, layout: Layout) -> tuple[int, ...]:
    """Return the dimensions of the activations that share a draw."""
    if draw is None:
        draw = "channel" if layout.places else "unit"
    if draw in ("place", "channel") and not layout.places:
        raise ValueError(
            f"draw: {draw} needs places (a feature map or a sequence), but there are none here; "
            "use unit or example"
        )
    channel, places = (layout.channel,), layout.places
    return {"unit": (), "place": channel, "channel": places, "example": channel + places}[draw]


def check_draw(draw: Draw | None, shapes: Mapping[str, SiteShape]) -> None:
    """Raise an error for a draw that needs places at a site without places."""
    for site, found in shapes.items():
        try:
            shared_dims(draw, found.layout)
        except ValueError as error:
            raise LupiError(f"site {site}: {error}") from None


# Its variance

Prior = float | Callable[[Tensor], Tensor]
"""A variance, or a function from x* (B, ...) to variances (B, units) or (B, channels, *places)."""


class RegionPrior(Settings):
    """A prior variance inside the region marked by x*, and another outside."""

    inside: float = Field(ge=0, le=1000)
    outside: float = Field(ge=0, le=1000)

    def __call__(self, region: Tensor) -> Tensor:
        """Return the variance at each place of the region."""
        return self.outside + (self.inside - self.outside) * region


def dropout_variance(site: nn.Module) -> float:
    """Return the variance of the Bernoulli dropout at a site, p / (1 - p); 1 without dropout.

    So noise replaces a dropout layer with the same strength. A rate of 0.5 gives the paper's
    variance of 1.
    """
    rate = site.p if isinstance(site, DROPOUTS) else 0.5
    return rate / (1 - rate) if 0 < rate < 1 else 1.0


class Variance(NamedTuple):
    """The variance at a site in one pass."""

    logvar: Tensor
    """log h*(x*), broadcastable to the activations; rows without x* as `missing` says."""
    offset: Tensor
    """Difference of the log-variance from that of the prior; 0 for rows without x*."""
    has_xstar: Tensor
    """(B,) bool."""


def bounded(logvar: Tensor) -> Tensor:
    """Clip a log-variance so that neither sigma nor its gradient overflows."""
    return logvar.clamp(LOGVAR_MIN, LOGVAR_MAX)


def fit_to(values: Tensor, h: Tensor, layout: Layout) -> Tensor:
    """Reshape per-example values so that they broadcast to the activations `h`.

    Values are (B, units), or (B, 1 or channels, *places) whatever the layout of `h`. Places are
    averaged or repeated to those of `h`.
    """
    n_places = len(layout.places)
    if values.dim() == 2:
        values = values.reshape(*values.shape, *[1] * n_places)
    given = values.shape
    if values.dim() == 2 + n_places:
        sizes = [h.shape[dim] for dim in layout.places]
        if n_places and list(values.shape[2:]) not in (sizes, [1] * n_places):
            values = F.interpolate(values, sizes, mode="area")
        values = values.movedim(1, layout.channel)
    fits = all(n in (1, m) for n, m in zip(values.shape[1:], h.shape[1:], strict=False))
    if values.dim() != h.dim() or not fits:
        raise ValueError(
            f"a log-variance of shape {tuple(given)} can't be fitted to activations of shape "
            f"{tuple(h.shape)}: give (B, units), or (B, 1 or channels, *places) at a site that "
            "has places"
        )
    return values


def keep_budget(logvar: Tensor, prior: Tensor, has: Tensor, budget: Budget) -> Tensor:
    """Rescale variances to the mean of the prior: over the rows with x*, or for each example."""
    if budget == "none":
        return logvar
    log_mean = _log_batch_mean if budget == "batch" else _log_example_mean
    return logvar - log_mean(logvar, has) + log_mean(prior, has)


def _log_batch_mean(logvar: Tensor, has: Tensor) -> Tensor:
    each = logvar.exp().flatten(1).mean(1)  # (B,), or (1,) for a prior that is a number
    mean = (each * has).sum() / has.sum().clamp(min=1)
    return mean.clamp(min=math.exp(-LOGVAR_LIMIT)).log()


def _log_example_mean(logvar: Tensor, has: Tensor) -> Tensor:
    n = math.prod(logvar.shape[1:])
    return logvar.logsumexp(tuple(range(1, logvar.dim())), keepdim=True) - math.log(n)


# The penalty: with d = log h* - log h0 (B, units), the mean divergence of each example, (B,)


def kl(d: Tensor) -> Tensor:
    """Return (e^d - 1 - d) / 2: KL(N(1, h*) to N(1, h0)), flat at the prior, steep above it."""
    low = d.clamp(max=STEEPEST)
    slope = low.expm1()
    return 0.5 * torch.addcmul(slope - low, d - low, slope).mean(1)


def l2(d: Tensor) -> Tensor:
    """Return the paper's norm, the root of mean d^2, with a cusp at the prior; gradient 0 there."""
    length: Tensor = torch.linalg.vector_norm(d, dim=1)
    return length / math.sqrt(d.shape[1])


PENALTIES: dict[PenaltyName, Callable[[Tensor], Tensor]] = {"kl": kl, "l2": l2}


# The layer


class NoisyOutput(NamedTuple):
    """Activations with noise, and the penalty."""

    output: Tensor
    penalty: Tensor
    """(B,): the weighted penalty of each row, 0 without x*. Add its mean to the loss."""


class HeteroscedasticDropout(nn.Module):
    """Dropout whose variance is a function of x*: noise in training, identity in `eval()`.

        drop = HeteroscedasticDropout(nn.Linear(4, 64))     # h*: x* (B, 4) -> 64 log-variances
        h, penalty = drop(h, xstar)                         # h: (B, 64)
        loss = cross_entropy(head(h), y) + penalty.mean()

    `hstar` maps x* to offsets of the log-variance from that of the prior, so that an output of
    zero gives the prior. Its output is (B, units), or (B, 1 or channels, ...) with a map.

    Args:
        hstar: The network h* on x*. None keeps the variance at the prior.
        prior: The variance h0: a number, or a function from x* to variances (for a box mask:
            one variance inside, another outside). The paper uses 1.
        beta: Weight of the penalty.
        penalty: Divergence of h* from the prior: `kl`, or `l2` as in the paper.
        budget: Keep the mean variance of the `batch`, or of each `example`, at that of the
            prior, so that h* distributes the noise but does not change its amount; or `none`.
            Without a budget, h* reduces all noise, because that lowers the training loss.
        missing: Variance of rows without x*: the `mean` variance of the rows with x* (the prior
            if there are none), the `prior`, or `none`. If the prior is a function of x*, rows
            get no noise with `prior`, or if no row of the batch has x*.
        draw: Entries that share one draw: `unit`, `place`, `channel` or `example`. The default
            is `channel` for maps and sequences and `unit` for vectors.
        distribution: `gaussian`, or `bernoulli`, which drops entries at the rate with the same
            variance. Bernoulli draws give no gradient to h*.
        layout: Layout of the activations; by default (B, C), (B, T, C) or (B, C, H, W).
    """

    def __init__(
        self,
        hstar: nn.Module | None,
        *,
        prior: Prior = 1.0,
        beta: float = 0.01,
        penalty: PenaltyName = "kl",
        budget: Budget = "batch",
        missing: Missing = "mean",
        draw: Draw | None = None,
        distribution: Distribution = "gaussian",
        layout: Layout | None = None,
    ) -> None:
        super().__init__()
        if not callable(prior) and not _is_finite(prior):
            raise ValueError(
                f"prior: got {prior!r}, expected a finite variance >= 0 or a function of x*"
            )
        if not _is_finite(beta):
            raise ValueError(f"beta: got {beta!r}, expected a finite weight >= 0")
        if distribution == "bernoulli" and hstar is not None:
            raise ValueError("distribution: bernoulli gives h* no gradient; omit `hstar`")
        self.hstar = hstar
        self.prior = prior
        self.beta = beta if hstar is not None else 0.0
        self.divergence: PenaltyName = penalty
        PENALTIES[penalty]  # raises for an unknown name
        self.budget: Budget = budget
        self.missing: Missing = missing
        self.draw = draw
        self.distribution: Distribution = distribution
        self.layout = layout
        self.strength = 1.0
        """Factor of the variance, below 1 during warm-up."""

    def forward(
        self, h: Tensor, xstar: Tensor | None = None, has_xstar: Tensor | None = None
    ) -> NoisyOutput:
        """Return `h` with noise and the penalty; in `eval()` `h` itself, whatever x* is.

        Args:
            h: activations, (B, ...).
            xstar: (B, ...).
            has_xstar: (B,) bool; rows that are False, and rows of x* that are not finite,
                follow `missing`.
        """
        if not self.training:
            return NoisyOutput(h, h.new_zeros(len(h)))
        if xstar is None:
            raise ValueError("heteroscedastic dropout trains with x*; call .eval() to predict")
        noisy, variance = self.sample(h, xstar, has_xstar)
        return NoisyOutput(noisy, self.penalty([variance]))

    def sample(
        self, h: Tensor, xstar: Tensor, has_xstar: Tensor | None = None
    ) -> tuple[Tensor, Variance]:
        """Return `h` with noise, and its variance."""
        variance = self.variance(h, xstar, has_xstar)
        logvar = bounded(variance.logvar)
        if self.strength < 1:
            logvar = logvar + math.log(max(self.strength, 1e-12))
        layout = self.layout or default_layout(h.dim())
        return add_noise(h, logvar, layout, self.draw, self.distribution), variance

    def variance(self, h: Tensor, xstar: Tensor, has_xstar: Tensor | None = None) -> Variance:
        """Return the variance for activations like `h`; only the shape of `h` is used."""
        has = finite_rows(xstar)
        if has_xstar is not None:
            has = has & has_xstar
        every = not torch.compiler.is_compiling() and bool(has.all())
        layout = self.layout or default_layout(h.dim())
        # Variances are computed in the precision of h*'s weights even under autocast.
        with torch.autocast(xstar.device.type, enabled=False):
            if not every:
                xstar = torch.where(over_rows(has, xstar), xstar, 0)
            xstar = xstar.to(self._dtype(xstar))
            largest = min(XSTAR_MAX, torch.finfo(xstar.dtype).max)
            xstar = xstar.clamp(-largest, largest)
            prior = self._log_prior(xstar, h, layout)
            if self.hstar is None:
                logvar = prior.expand(len(xstar), *prior.shape[1:])
            else:
                offset = fit_to(self.hstar(xstar), h, layout)
                logvar = (
                    self.log_variance(offset, prior).nan_to_num().clamp(-LOGVAR_LIMIT, LOGVAR_LIMIT)
                )
                logvar = keep_budget(logvar, prior, has, self.budget)
            if not every:
                logvar = self._fill_missing(logvar, prior, has)
                prior = torch.where(over_rows(has, logvar), prior, logvar)
            return Variance(logvar, logvar - prior, has)

    def log_variance(self, offset: Tensor, prior: Tensor) -> Tensor:
        """Return the log-variance for the output of h*: an offset from the log-prior."""
        return prior + offset

    def _fill_missing(self, logvar: Tensor, prior: Tensor, has: Tensor) -> Tensor:
        """Replace the log-variance of rows without x*: all that happens to them happens here."""
        fill = prior
        if callable(self.prior) or self.missing == "none":
            fill = torch.full_like(prior[:1], LOGVAR_MIN)
        if self.missing == "mean":
            weight = over_rows(has.to(logvar.dtype), logvar)
            total, n = (bounded(logvar.detach()).exp() * weight).sum(0, keepdim=True), weight.sum()
            mean = (total / n.clamp(min=1)).clamp(min=math.exp(LOGVAR_MIN)).log()
            fill = torch.where(n > 0, mean, fill)
        return torch.where(over_rows(has, logvar), logvar, fill)

    def penalty(self, variances: Sequence[Variance]) -> Tensor:
        """Return the penalty of each row, (B,), over sites with the options of this one."""
        has = variances[0].has_xstar
        if self.beta == 0:
            return variances[0].logvar.new_zeros(len(has))
        each = [PENALTIES[self.divergence](v.offset.flatten(1)) for v in variances]
        return self.beta * sum(each[1:], each[0])

    def _log_prior(self, xstar: Tensor, h: Tensor, layout: Layout) -> Tensor:
        """Return log h0: of each row, or of all rows at once if it is a number."""
        lowest, highest = math.exp(LOGVAR_MIN), math.exp(LOGVAR_MAX)
        if not callable(self.prior):
            logvar = math.log(min(max(self.prior, lowest), highest))
            return xstar.new_full([1] * h.dim(), logvar)
        return fit_to(self.prior(xstar), h, layout).clamp(lowest, highest).log()

    def _dtype(self, xstar: Tensor) -> torch.dtype:
        if self.hstar is not None and (weight := next(self.hstar.parameters(), None)) is not None:
            return weight.dtype
        return xstar.dtype if xstar.is_floating_point() else torch.float32

    def extra_repr(self) -> str:
        """Return the main settings."""
        prior = "function of x*" if callable(self.prior) else self.prior
        return f"prior={prior}, draw={self.draw or 'usual'}, beta={self.beta}"


def _is_finite(value: object) -> bool:
    """Return whether a value is a finite number that is not negative."""
    return isinstance(value, int | float) and math.isfinite(value) and value >= 0
