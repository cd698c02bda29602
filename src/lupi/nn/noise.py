"""Multiplicative Gaussian noise with a variance of its own for every example and unit.

    z = h * (1 + sigma * eps),   eps ~ N(0, 1),   sigma = exp(logvar / 2)

Lambert, Sener, Savarese: "Deep Learning under Privileged Information Using Heteroscedastic
Dropout", CVPR 2018. Pure functions first; `HeteroscedasticDropout` is a thin module over them.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lupi.nn import rows

LOGVAR_MIN, LOGVAR_MAX = -10.0, 4.0
"""Bounds of the noise: a variance of 4.5e-5 is practically none, one of 55 drowns the signal."""
LOGVAR_LIMIT = 50.0
"""The penalty sees log-variances up to here, and so pulls back one that left the bounds."""
XSTAR_MAX = 1e6
"""x* beyond this is cut before it enters h*, so that no finite input overflows."""

Norm = Literal["l1", "l2", "l2-squared"]
Reduce = Literal["mean", "sum"]
Missing = Literal["mean", "prior", "none"]
Reading = Literal["paper", "official", "official-translation"]
Prior = float | Callable[[Tensor], Tensor]


def multiplicative_noise(
    h: Tensor, logvar: Tensor, shared_dims: Sequence[int] | None = ()
) -> Tensor:
    """Return h * (1 + sigma * eps), differentiable in both arguments.

    Args:
        h: activations, (B, ...).
        logvar: log of the variance, broadcastable to `h`.
        shared_dims: dimensions of `h` along which one draw of eps is shared, such as time. None:
            time, where `h` is a sequence (B, T, C).
    """
    if shared_dims is None:
        shared_dims = (1,) if h.dim() == 3 else ()
    shape = list(h.shape)
    for dim in shared_dims:
        shape[dim] = 1
    shares_rows = 0 in {dim % h.dim() for dim in shared_dims}
    like = h.new_empty(shape)
    eps = torch.randn_like(like) if shares_rows else rows.draw(torch.randn_like, like)
    return torch.addcmul(h, h, torch.exp(0.5 * logvar).to(h.dtype) * eps)


def bounded(logvar: Tensor) -> Tensor:
    """Keep a log-variance where neither sigma nor its gradient overflows."""
    return logvar.clamp(LOGVAR_MIN, LOGVAR_MAX)


def fit_to(values: Tensor, h: Tensor) -> Tensor:
    """Bring per-example values to a shape that broadcasts to the activations `h`.

    (B, C) fits (B, C), a sequence (B, T, C) and a feature map (B, C, H, W); a map
    (B, C, h, w) is averaged or repeated to (B, C, H, W). Where `h` has more rows than
    `values` (several noise draws per example), the rows are repeated.
    """
    given = values.shape
    if values.dim() == 2 and h.dim() == 3:
        values = values[:, None, :]  # (B, C) -> (B, 1, C)
    elif values.dim() == 2 and h.dim() > 3:
        values = values.reshape(*values.shape, *[1] * (h.dim() - 2))  # (B, C) -> (B, C, 1, 1)
    elif values.dim() == h.dim() == 4 and values.shape[2:] not in (h.shape[2:], (1, 1)):
        values = F.interpolate(values, h.shape[2:], mode="area")
    fits = all(n in (1, m) for n, m in zip(values.shape[1:], h.shape[1:], strict=False))
    if values.dim() != h.dim() or not fits:
        raise ValueError(
            f"a log-variance of shape {tuple(given)} can't be fitted to activations of "
            f"shape {tuple(h.shape)}: give (B, units), or a map (B, channels, height, width) "
            "at a site that has one"
        )
    if values.shape[0] not in (1, h.shape[0]):
        values = values.repeat(h.shape[0] // values.shape[0], *[1] * (values.dim() - 1))
    return values


def divergence(
    logvar: Tensor, prior_logvar: Tensor, norm: Norm = "l2", reduce: Reduce = "mean"
) -> Tensor:
    """Return ||log h* - log h0|| of each example, (B,).

    | norm       | sum over units   | mean over units   |
    |------------|------------------|-------------------|
    | l1         | sum |d|          | mean |d|          |
    | l2         | sqrt(sum d^2)    | sqrt(mean d^2)    |
    | l2-squared | sum d^2          | mean d^2          |
    """
    d = (logvar - prior_logvar).flatten(1)
    n_units = d.shape[1] if reduce == "mean" else 1
    if norm == "l1":
        return d.abs().sum(1) / n_units
    if norm == "l2":
        length: Tensor = torch.linalg.vector_norm(d, dim=1)  # its gradient at 0 is 0
        return length / math.sqrt(n_units)
    return d.square().sum(1) / n_units


class HeteroscedasticDropout(nn.Module):
    """Dropout whose variance is a function of x*: noise in training, identity in `eval()`.

        drop = HeteroscedasticDropout(nn.Linear(4, 64))     # h*: x* (B, 4) -> 64 log-variances
        h = drop(h, xstar)                                  # h: (B, 64)
        loss = cross_entropy(head(h), y) + drop.penalty()

    `hstar` maps x* to offsets of the log-variance from that of the prior, so that an output of
    zero is the prior itself. Its output may be (B, units), or a map (B, 1 or channels, h, w).

    Args:
        hstar: the network of x*; None keeps the variance at the prior.
        prior: the variance h0: a number, or a function from x* to variances (for a box mask:
            one variance inside, another outside). The paper has 1.
        beta: weight of the penalty.
        norm: see `divergence`; so is `reduce`.
        reduce: over units. Over examples it is always the mean, so that no setting depends on
            the batch size.
        missing: variance of rows without x*: `mean` is the mean variance of the rows that have
            it (the prior where none has), `prior` the prior's, `none` no noise. Where the prior
            is a function of x*, `prior` and a batch without any x* mean no noise.
        shared_dims: see `multiplicative_noise`.
        n_samples: draws per example. The output then has n_samples * B rows, draw by draw, and
            so has everything after it; rows that several draws already repeat are left so.
        reading: `paper`, or `official` for the authors' code: log-variance ReLU(hstar), penalty
            beta * ||sigma||_2 over the whole batch tensor, and no prior. `official-translation` is
            their code for sentences: the same without ReLU.
    """

    def __init__(
        self,
        hstar: nn.Module | None,
        *,
        prior: Prior = 1.0,
        beta: float = 1.0,
        norm: Norm = "l2",
        reduce: Reduce = "mean",
        missing: Missing = "mean",
        shared_dims: Sequence[int] | None = (),
        n_samples: int = 1,
        reading: Reading = "paper",
    ) -> None:
        super().__init__()
        if not callable(prior) and not (math.isfinite(prior) and prior >= 0):
            raise ValueError(f"prior: got {prior!r}, expected a finite variance >= 0")
        if beta < 0 or n_samples < 1:
            raise ValueError(f"got beta={beta}, n_samples={n_samples}; expected >= 0 and >= 1")
        if reading != "paper" and hstar is None:
            raise ValueError("the official readings have no prior: they need an hstar network")
        self.hstar = hstar
        self.prior = prior
        self.beta = beta
        self.norm: Norm = norm
        self.reduce: Reduce = reduce
        self.missing: Missing = missing
        self.shared_dims = shared_dims
        self.n_samples = n_samples
        self.reading: Reading = reading
        self._last: tuple[Tensor, Tensor, Tensor] | None = None

    def forward(
        self, h: Tensor, xstar: Tensor | None = None, has_xstar: Tensor | None = None
    ) -> Tensor:
        """Return `h` with noise; in `eval()` return `h` itself, whatever x* is.

        Args:
            h: (B, ...) activations, or (k * B, ...) where k draws were made before.
            xstar: (B, ...).
            has_xstar: (B,) bool; rows that are False, and rows of x* that are not finite,
                follow `missing`.
        """
        if not self.training:
            return h
        if xstar is None:
            raise ValueError("heteroscedastic dropout trains with x*; call .eval() to predict")
        if h.shape[0] == xstar.shape[0] and self.n_samples > 1:
            h = h.repeat(self.n_samples, *[1] * (h.dim() - 1))
        self._last = logvar, _, _ = self.variances(h, xstar, has_xstar)
        return multiplicative_noise(h, fit_to(bounded(logvar), h), self.shared_dims)

    def variances(
        self, h: Tensor, xstar: Tensor, has_xstar: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return log h*(x*) and log h0(x*), fitted to `h`, and which rows (B,) have x*."""
        has = torch.isfinite(xstar).flatten(1).all(1)
        if has_xstar is not None:
            has = has & has_xstar
        h = h[: len(xstar)]
        # Variances are computed in the precision of h*'s weights even under autocast.
        with torch.autocast(xstar.device.type, enabled=False):
            xstar = torch.where(_rows(has, xstar), xstar, 0).to(self._dtype(xstar))
            largest = min(XSTAR_MAX, torch.finfo(xstar.dtype).max)
            xstar = xstar.clamp(-largest, largest)
            prior = self._prior_at(xstar, h)
            offset = fit_to(self.hstar(xstar), h) if self.hstar else torch.zeros_like(prior)
            logvar = prior + offset if self.reading == "paper" else offset
            logvar = F.relu(logvar) if self.reading == "official" else logvar
            logvar = logvar.nan_to_num().clamp(-LOGVAR_LIMIT, LOGVAR_LIMIT)
            fill = self._logvar_of_missing(logvar, has)
            return torch.where(_rows(has, logvar), logvar, fill), prior, has

    def forget(self) -> None:
        """Forget the last training pass, and with it its graph."""
        self._last = None

    @property
    def has_passed(self) -> bool:
        """Whether there is a training pass that a penalty could be of."""
        return self._last is not None

    def penalty(self) -> Tensor:
        """Return beta * ||log h* - log h0|| of the last training pass, mean over rows with x*."""
        if self._last is None:
            raise RuntimeError("penalty() follows a forward pass in training")
        logvar, prior, has = self._last
        weight = has.to(logvar.dtype)
        if self.reading != "paper":
            sigma = torch.exp(0.5 * bounded(logvar)) * _rows(weight, logvar)
            return self.beta * rows.share(rows.norm(sigma))
        each = divergence(logvar, prior, self.norm, self.reduce)
        with rows.with_xstar():
            return rows.weigh(self.beta * (each * weight).sum() / weight.sum().clamp(min=1))

    def _dtype(self, xstar: Tensor) -> torch.dtype:
        weight = next(self.hstar.parameters(), None) if self.hstar else None
        if weight is not None:
            return weight.dtype
        return xstar.dtype if xstar.is_floating_point() else torch.float32

    def _prior_at(self, xstar: Tensor, h: Tensor) -> Tensor:
        if callable(self.prior):
            variance = fit_to(self.prior(xstar), h)
        else:
            variance = xstar.new_full([len(xstar)] + [1] * (h.dim() - 1), self.prior)
        return variance.clamp(min=math.exp(LOGVAR_MIN), max=math.exp(LOGVAR_MAX)).log()

    def _logvar_of_missing(self, logvar: Tensor, has: Tensor) -> Tensor:
        none = logvar.new_full([1] * logvar.dim(), LOGVAR_MIN)
        prior = none if callable(self.prior) else self._prior_at(logvar[:1], logvar[:1])
        if self.missing == "none":
            return none
        if self.missing == "prior":
            return prior
        weight = _rows(has.to(logvar.dtype), logvar)
        total = rows.total((bounded(logvar.detach()).exp() * weight).sum(0, keepdim=True))
        n = rows.total(weight.sum())
        mean = (total / n.clamp(min=1)).clamp(min=math.exp(LOGVAR_MIN))
        return torch.where(n > 0, mean.log(), prior)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the last pass, which is part of a graph and can't be copied."""
        return {**self.__dict__, "_last": None}

    def extra_repr(self) -> str:
        """Show the settings that matter."""
        prior = "function of x*" if callable(self.prior) else self.prior
        return f"prior={prior}, beta={self.beta}, missing={self.missing}, reading={self.reading}"


def _rows(mask: Tensor, like: Tensor) -> Tensor:
    """Reshape (B,) so that it broadcasts over the rows of `like`."""
    return mask.reshape(-1, *[1] * (like.dim() - 1))
