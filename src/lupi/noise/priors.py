"""Prior variances h0: the noise before h* is trained."""

from collections.abc import Callable

from pydantic import Field
from torch import Tensor, nn

from lupi.nn.sites import DROPOUTS
from lupi.settings import Settings

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
