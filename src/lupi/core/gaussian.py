"""Outputs that are a normal distribution: mean and log-variance of a number, (B, 2).

    -E log N(y; m, v) = (log v + ((m - mean)^2 + variance) / v + log 2 pi) / 2

for y with some mean and variance: with none, the negative log-likelihood of a number.
"""

import math

import torch
from torch import Tensor

LOGVAR_MIN, LOGVAR_MAX = -8.0, 8.0
"""Minimum log-variance for a standardised target: a deviation of 2 % of its spread."""


def moments(output: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and log-variance of each row, (B,) both."""
    mean, logvar = output.unbind(1)
    return mean, logvar.clamp(LOGVAR_MIN, LOGVAR_MAX)


def gaussian_cross_entropy(output: Tensor, mean: Tensor, variance: Tensor | float = 0.0) -> Tensor:
    """Return the cross-entropy of each row (B,) with numbers, or with other distributions.

    Args:
        output: mean and log-variance, (B, 2).
        mean: Mean of the target, (B,).
        variance: Variance of the target, (B,); 0 for a number.
    """
    own, logvar = moments(output)
    squares = (own - mean).square()
    if isinstance(variance, Tensor) or variance:
        squares = squares + variance
    return 0.5 * (logvar + squares * (-logvar).exp() + math.log(2 * math.pi))


def variance_loss(output: Tensor, y: Tensor) -> Tensor:
    """Return the loss of each row (B,) that fits only the log-variance, not the mean.

    Args:
        output: mean and log-variance, (B, 2).
        y: numbers, (B,).
    """
    own, logvar = moments(output)
    return gaussian_cross_entropy(torch.stack([own.detach(), logvar], 1), y)
