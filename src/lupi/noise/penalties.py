"""Penalties: divergences of log-variances from the prior, for each example.

With d = log h* - log h0, averaged over the units of an example:

| name | divergence | |
|---|---|---|
| kl | (e^d - 1 - d) / 2 | KL(N(1, h*) to N(1, h0)); flat at the prior, steep above it |
| l2-squared | d^2 | flat at the prior |
| huber | sqrt(1 + d^2) - 1 | flat at the prior, linear far from it |
| l2 | sqrt(mean d^2) | the paper's norm |
| l1 | abs(d) | the norm that the paper's appendix derives |

`l1` and `l2` have a cusp at the prior: h* stays there unless the gradient of the loss exceeds beta.
The others are smooth.
"""

import math
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

STEEPEST = 10.0
"""The KL is linear beyond this, so that its gradient stays finite."""

PenaltyName = Literal["kl", "l2-squared", "huber", "l2", "l1"]
Penalty = Callable[[Tensor], Tensor]
"""From differences (B, units) to a penalty for each example, (B,)."""


def kl(d: Tensor) -> Tensor:
    """Return the mean KL divergence over units."""
    low = d.clamp(max=STEEPEST)
    slope = low.expm1()
    return 0.5 * torch.addcmul(slope - low, d - low, slope).mean(1)


def l2_squared(d: Tensor) -> Tensor:
    """Return the mean square over units."""
    return d.square().mean(1)


def huber(d: Tensor) -> Tensor:
    """Return the mean pseudo-Huber loss over units."""
    each: Tensor = (1 + d.square()).sqrt() - 1
    return each.mean(1)


def l2(d: Tensor) -> Tensor:
    """Return the root mean square over units; its gradient at 0 is 0."""
    length: Tensor = torch.linalg.vector_norm(d, dim=1)
    return length / math.sqrt(d.shape[1])


def l1(d: Tensor) -> Tensor:
    """Return the mean absolute value over units."""
    return d.abs().mean(1)


PENALTIES: dict[PenaltyName, Penalty] = {
    "kl": kl,
    "l2-squared": l2_squared,
    "huber": huber,
    "l2": l2,
    "l1": l1,
}
