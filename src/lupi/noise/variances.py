"""From the output of h* to the log-variance at a site, for each row."""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from lupi.core.batch import over_rows
from lupi.nn.layouts import Layout

LOGVAR_MIN, LOGVAR_MAX = -10.0, 7.0
"""Bounds of the log-variance of the noise: variances of 4.5e-5 and 1100."""
LOGVAR_LIMIT = 50.0
"""Bounds of the log-variance in the penalty, which pulls values back into the bounds above."""

Missing = Literal["mean", "prior", "none"]
Budget = Literal["none", "example", "batch"]


FromRows = Callable[[Tensor, Tensor, Tensor], Tensor]
"""From log-variance and log-prior of rows, and which of them (B,) have x*, to a log-variance.
A prior that is a number is (1, ...)."""


class Variance(NamedTuple):
    """The variance at a site in one pass."""

    logvar: Tensor
    """log h*(x*), broadcastable to the activations; rows without x* as the policy says."""
    prior: Tensor
    """log h0(x*): of each row, or one number for all, (1, ...)."""
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


def keep_example_mean(logvar: Tensor, prior: Tensor, has: Tensor) -> Tensor:
    """Rescale the variances of each example to the mean of the prior."""
    dims = tuple(range(1, logvar.dim()))
    return logvar - _log_mean_exp(logvar, dims) + _log_mean_exp(prior, dims)


def keep_nothing(logvar: Tensor, prior: Tensor, has: Tensor) -> Tensor:
    """Return the log-variance unchanged."""
    return logvar


def keep_batch_mean(logvar: Tensor, prior: Tensor, has: Tensor) -> Tensor:
    """Rescale the variances of a batch to the mean of the prior.

    Rows without x* are ignored.
    """

    def mean(values: Tensor) -> Tensor:
        if not torch.compiler.is_compiling() and bool(has.all()):
            return values.exp().mean().log()
        each = values.exp().flatten(1).mean(1)  # (B,)
        total, n = (each * has).sum(), has.sum().to(each.dtype)
        return (total / n.clamp(min=1)).clamp(min=math.exp(-LOGVAR_LIMIT)).log()

    if prior.numel() == 1:
        return logvar - mean(logvar - prior)
    return logvar - mean(logvar) + mean(prior)


def _log_mean_exp(values: Tensor, dims: tuple[int, ...]) -> Tensor:
    n = math.prod(values.shape[1:])
    return values.logsumexp(dims, keepdim=True) - math.log(n)


BUDGETS: dict[Budget, FromRows] = {
    "none": keep_nothing,
    "example": keep_example_mean,
    "batch": keep_batch_mean,
}


def mean_variance(logvar: Tensor, prior: Tensor, has: Tensor) -> Tensor:
    """Return the log of the mean variance of the rows with x*; the prior if there are none."""
    weight = over_rows(has.to(logvar.dtype), logvar)
    total = (bounded(logvar.detach()).exp() * weight).sum(0, keepdim=True)
    n = weight.sum()
    mean = (total / n.clamp(min=1)).clamp(min=math.exp(LOGVAR_MIN))
    return torch.where(n > 0, mean.log(), prior)


def prior_variance(logvar: Tensor, prior: Tensor, has: Tensor) -> Tensor:
    """Return the prior."""
    return prior


def no_noise(logvar: Tensor, prior: Tensor, has: Tensor) -> Tensor:
    """Return a variance close to 0."""
    return torch.full_like(prior, LOGVAR_MIN)


MISSING: dict[Missing, FromRows] = {
    "mean": mean_variance,
    "prior": prior_variance,
    "none": no_noise,
}
"""Policies for rows without x*; the log-prior is that of one such row."""
