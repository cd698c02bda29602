"""From what h* says of x* to the log-variance at a site, row by row."""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from lupi.core.whole_batch import WholeBatch
from lupi.nn.layouts import Layout

LOGVAR_MIN, LOGVAR_MAX = -10.0, 7.0
"""Bounds of the noise: a variance of 4.5e-5 is practically none, one of 1100 drowns the signal."""
LOGVAR_LIMIT = 50.0
"""The penalty sees log-variances up to here, and so pulls back one that left the bounds."""

Missing = Literal["mean", "prior", "none"]
Budget = Literal["none", "example", "batch"]


FromRows = Callable[[Tensor, Tensor, Tensor, WholeBatch], Tensor]
"""From log-variance and log-prior of rows, which of them (B,) have x*, and the batch they are of,
to a log-variance. A prior that is a number is (1, ...)."""


class Variance(NamedTuple):
    """The variance at a site in one pass."""

    logvar: Tensor
    """log h*(x*), broadcastable to the activations; rows without x* as the policy says."""
    prior: Tensor
    """log h0(x*): of each row, or one number for all, (1, ...)."""
    has_xstar: Tensor
    """(B,) bool."""


def bounded(logvar: Tensor) -> Tensor:
    """Keep a log-variance where neither sigma nor its gradient overflows."""
    return logvar.clamp(LOGVAR_MIN, LOGVAR_MAX)


def fit_to(values: Tensor, h: Tensor, layout: Layout) -> Tensor:
    """Bring per-example values to a shape that broadcasts to the activations `h`.

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


def over_rows(mask: Tensor, like: Tensor) -> Tensor:
    """Reshape (B,) so that it broadcasts over the rows of `like`."""
    return mask.reshape(-1, *[1] * (like.dim() - 1))


def keep_example_mean(logvar: Tensor, prior: Tensor, has: Tensor, whole: WholeBatch) -> Tensor:
    """Give the variances of each example the mean that the prior has: h* only says where."""
    dims = tuple(range(1, logvar.dim()))
    return logvar - _log_mean_exp(logvar, dims) + _log_mean_exp(prior, dims)


def keep_nothing(logvar: Tensor, prior: Tensor, has: Tensor, whole: WholeBatch) -> Tensor:
    """Return what h* says: it decides how much noise there is, too."""
    return logvar


def keep_batch_mean(logvar: Tensor, prior: Tensor, has: Tensor, whole: WholeBatch) -> Tensor:
    """Give the variances of a batch the mean that the prior has: h* says where, and in which rows.

    Rows without x* do not count.
    """

    def mean(values: Tensor) -> Tensor:
        if whole.every_row(has):
            return values.exp().mean().log()
        each = values.exp().flatten(1).mean(1)  # (B,)
        total, n = whole.sum((each * has).sum()), whole.sum(has.sum().to(each.dtype))
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


def mean_of_others(logvar: Tensor, prior: Tensor, has: Tensor, whole: WholeBatch) -> Tensor:
    """Return the mean variance of the rows that have x*, as a log; the prior where none has."""
    weight = over_rows(has.to(logvar.dtype), logvar)
    total = whole.sum((bounded(logvar.detach()).exp() * weight).sum(0, keepdim=True))
    n = whole.sum(weight.sum())
    mean = (total / n.clamp(min=1)).clamp(min=math.exp(LOGVAR_MIN))
    return torch.where(n > 0, mean.log(), prior)


def prior_itself(logvar: Tensor, prior: Tensor, has: Tensor, whole: WholeBatch) -> Tensor:
    """Return the prior."""
    return prior


def no_noise(logvar: Tensor, prior: Tensor, has: Tensor, whole: WholeBatch) -> Tensor:
    """Return practically no variance."""
    return torch.full_like(prior, LOGVAR_MIN)


MISSING: dict[Missing, FromRows] = {
    "mean": mean_of_others,
    "prior": prior_itself,
    "none": no_noise,
}
"""What rows without x* get; the log-prior is that of one such row."""
