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

LOGVAR_MIN = -10.0
"""A variance of 4.5e-5: practically no noise."""
LOGVAR_MAX = 4.0
"""A variance of 55: the signal is gone, the arithmetic is not."""
XSTAR_MAX = 1e6
"""x* beyond this is cut before it enters h*, so that no finite input overflows."""

Norm = Literal["l1", "l2", "l2-squared"]
Reduce = Literal["mean", "sum"]
Missing = Literal["mean", "prior", "none"]
Reading = Literal["paper", "official"]
Prior = float | Callable[[Tensor], Tensor]


def multiplicative_noise(h: Tensor, logvar: Tensor, shared_dims: Sequence[int] = ()) -> Tensor:
    """Return h * (1 + sigma * eps), differentiable in both arguments.

    Args:
        h: activations, (B, ...).
        logvar: log of the variance, broadcastable to `h`.
        shared_dims: dimensions of `h` along which one draw of eps is shared, such as time.
    """
    shape = list(h.shape)
    for dim in shared_dims:
        shape[dim] = 1
    eps = torch.randn(shape, dtype=h.dtype, device=h.device)
    return torch.addcmul(h, h, torch.exp(0.5 * logvar).to(h.dtype) * eps)


def fit_to(values: Tensor, h: Tensor) -> Tensor:
    """Bring per-example values to a shape that broadcasts to the activations `h`.

    (B, C) fits (B, C), a sequence (B, T, C) and a feature map (B, C, H, W); a map
    (B, C, h, w) is averaged or repeated to (B, C, H, W). Where `h` has more rows than
    `values` (several noise draws per example), the rows are repeated.
    """
    if values.dim() == 2 and h.dim() == 3:
        values = values[:, None, :]  # (B, C) -> (B, 1, C)
    elif values.dim() == 2 and h.dim() > 3:
        values = values.reshape(*values.shape, *[1] * (h.dim() - 2))  # (B, C) -> (B, C, 1, 1)
    elif values.dim() == 4 and h.dim() == 4:
        if values.shape[2:] != h.shape[2:] and values.shape[2:] != (1, 1):
            values = F.interpolate(values, h.shape[2:], mode="area")
    elif values.dim() != h.dim():
        raise ValueError(
            f"a log-variance of shape {tuple(values.shape)} can't be fitted to activations of "
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
    if norm == "l1":
        total = d.abs().sum(1)
    elif norm == "l2":
        total = torch.linalg.vector_norm(d, dim=1)
        return total / math.sqrt(d.shape[1]) if reduce == "mean" else total
    else:
        total = d.square().sum(1)
    return total / d.shape[1] if reduce == "mean" else total


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
        shared_dims: dimensions along which one draw is shared, such as time.
        n_samples: draws per example. The output then has n_samples * B rows, draw by draw, and
            so has everything after it; rows that several draws already repeat are left so.
        reading: `paper`, or `official` for the authors' code: log-variance ReLU(hstar), penalty
            beta * ||sigma||_2 over the whole batch tensor, and no prior.
    """

    logvar: Tensor | None
    """(B, ...): log-variance of the last training pass, fitted to its activations."""

    def __init__(
        self,
        hstar: nn.Module | None,
        *,
        prior: Prior = 1.0,
        beta: float = 1.0,
        norm: Norm = "l2",
        reduce: Reduce = "mean",
        missing: Missing = "mean",
        shared_dims: Sequence[int] = (),
        n_samples: int = 1,
        reading: Reading = "paper",
    ) -> None:
        super().__init__()
        if not callable(prior) and not (math.isfinite(prior) and prior >= 0):
            raise ValueError(f"prior: got {prior!r}, expected a finite variance >= 0")
        if beta < 0 or n_samples < 1:
            raise ValueError(f"got beta={beta}, n_samples={n_samples}; expected >= 0 and >= 1")
        if reading == "official" and hstar is None:
            raise ValueError("the official reading has no prior: it needs an hstar network")
        self.hstar = hstar
        self.prior = prior
        self.beta = beta
        self.norm: Norm = norm
        self.reduce: Reduce = reduce
        self.missing: Missing = missing
        self.shared_dims = tuple(shared_dims)
        self.n_samples = n_samples
        self.reading: Reading = reading
        self._forget()

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
        self.logvar, self._prior_logvar, self._has = self.variances(h, xstar, has_xstar)
        return multiplicative_noise(h, fit_to(self.logvar, h), self.shared_dims)

    def variances(
        self, h: Tensor, xstar: Tensor, has_xstar: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return log h*(x*) and log h0(x*), fitted to `h`, and which rows (B,) have x*."""
        has = torch.isfinite(xstar).flatten(1).all(1)
        if has_xstar is not None:
            has = has & has_xstar
        xstar = torch.where(_rows(has, xstar), xstar, 0.0)
        # Variances are computed in the precision of h*'s weights even under autocast.
        with torch.autocast(xstar.device.type, enabled=False):
            if self.hstar is not None:
                weight = next(self.hstar.parameters(), None)
                xstar = xstar.to(weight.dtype if weight is not None else torch.float32)
            bound = min(XSTAR_MAX, torch.finfo(xstar.dtype).max) if xstar.is_floating_point() else 1
            xstar = xstar.clamp(-bound, bound)
            one = h[: len(xstar)]
            prior = self._prior_at(xstar, one)
            offset = fit_to(self.hstar(xstar), one) if self.hstar is not None else None
            if self.reading == "official":
                logvar = F.relu(offset)  # type: ignore[arg-type]  # __init__ asks for hstar
            else:
                logvar = prior if offset is None else prior + offset
            logvar = torch.nan_to_num(logvar).clamp(LOGVAR_MIN, LOGVAR_MAX)
            fill = self._logvar_of_missing(logvar, has)
            return torch.where(_rows(has, logvar), logvar, fill), prior, has

    def penalty(self) -> Tensor:
        """Return beta * ||log h* - log h0|| of the last training pass, mean over rows with x*."""
        if self.logvar is None:
            raise RuntimeError("penalty() follows a forward pass in training")
        has = self._has.to(self.logvar.dtype)
        if self.reading == "official":
            sigma = torch.exp(0.5 * self.logvar) * _rows(has, self.logvar)
            return self.beta * torch.linalg.vector_norm(sigma)
        each = divergence(self.logvar, self._prior_logvar, self.norm, self.reduce)
        return self.beta * (each * has).sum() / has.sum().clamp(min=1)

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
        mean = (logvar.detach().exp() * weight).sum(0, keepdim=True) / weight.sum().clamp(min=1)
        return torch.where(has.any(), mean.clamp(min=math.exp(LOGVAR_MIN)).log(), prior)

    def _forget(self) -> None:
        self.logvar = None
        self._prior_logvar = self._has = torch.empty(0)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the last pass, which is part of a graph and can't be copied."""
        last = {"logvar": None, "_prior_logvar": torch.empty(0), "_has": torch.empty(0)}
        return {**self.__dict__, **last}

    def extra_repr(self) -> str:
        """Show the settings that matter."""
        prior = "function of x*" if callable(self.prior) else self.prior
        return f"prior={prior}, beta={self.beta}, missing={self.missing}, reading={self.reading}"


def _rows(mask: Tensor, like: Tensor) -> Tensor:
    """Reshape (B,) so that it broadcasts over the rows of `like`."""
    return mask.reshape(-1, *[1] * (like.dim() - 1))
