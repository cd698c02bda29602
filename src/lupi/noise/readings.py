"""The two readings: how the paper's text and its code convert the output of h* to noise.

|  | log-variance | penalty |
|---|---|---|
| paper | log h0 + h*(x*) | beta * divergence of log h* from log h0, for each example |
| official | ReLU(h*(x*)): sigma is at least 1 | beta * norm of sigma over batch and sites |
| official-translation | h*(x*) | the same: drives sigma to 0 |
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from lupi.core.batch import over_rows
from lupi.noise.penalties import Penalty, kl
from lupi.noise.variances import Variance, bounded

ReadingName = Literal["paper", "official", "official-translation"]


class Reading(Protocol):
    """How the output of h* is converted to a log-variance and a penalty."""

    def logvar(self, offset: Tensor, prior: Tensor, has: Tensor) -> Tensor:
        """Return the log-variance for the output of h*."""
        ...

    def penalty(self, variances: Sequence[Variance]) -> Tensor:
        """Return the penalty of each row, (B,), over all sites; 0 for rows without x*."""
        ...


@dataclass(frozen=True, slots=True)
class PaperReading:
    """The output of h* is an offset from the log-prior; the penalty is its divergence."""

    beta: float = 0.0
    divergence: Penalty = kl

    def logvar(self, offset: Tensor, prior: Tensor, has: Tensor) -> Tensor:
        """Add the offset to the prior."""
        return prior + offset

    def penalty(self, variances: Sequence[Variance]) -> Tensor:
        """Return beta * divergence, summed over sites."""
        has = variances[0].has_xstar
        if self.beta == 0:
            return variances[0].logvar.new_zeros(len(has))
        each = [self.divergence((v.logvar - v.prior).flatten(1)) for v in variances]
        total = sum(each[1:], each[0])  # (B,)
        return total * (self.beta * has)


@dataclass(frozen=True, slots=True)
class OfficialReading:
    """The authors' code: the output of h* is the log-variance; the penalty is a norm of sigma."""

    beta: float
    relu: bool = True

    def logvar(self, offset: Tensor, prior: Tensor, has: Tensor) -> Tensor:
        """Return the output of h*, through a ReLU if `relu`."""
        return F.relu(offset) if self.relu else offset

    def penalty(self, variances: Sequence[Variance]) -> Tensor:
        """Return beta * ||sigma||, one norm over the batch and all sites, for every row with x*.

        It is not a mean over rows: it grows with the batch size.
        """
        has = variances[0].has_xstar
        sigmas = [
            (torch.exp(0.5 * bounded(v.logvar)) * over_rows(has, v.logvar)).flatten(1)
            for v in variances
        ]
        norm: Tensor = torch.linalg.vector_norm(torch.cat(sigmas, 1))
        return self.beta * norm * has
