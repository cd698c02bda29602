"""Networks h* from x* to offsets of the log-variance from its prior."""

import math
from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.parameter import UninitializedParameter


def _zero(layer: nn.Linear | nn.Conv2d) -> nn.Module:
    nn.init.zeros_(layer.weight)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer


def vector_encoder(n_in: int, n_out: int, n_hidden: int = 64) -> nn.Sequential:
    """Map a vector (B, n_in) to units (B, n_out), starting at zero: the prior itself."""
    return nn.Sequential(nn.Linear(n_in, n_hidden), nn.ReLU(), _zero(nn.Linear(n_hidden, n_out)))


class LazyUnits(nn.Module):
    """A linear layer (B, n_in) to (B, n_out) that is made at its first pass, at zero.

    An optimizer may take its weights before, as those of PyTorch's own lazy layers; but someone
    has to set `n_out`, which no input tells.
    """

    def __init__(self) -> None:
        super().__init__()
        self.n_out: int | None = None
        self.weight: nn.Parameter | UninitializedParameter = UninitializedParameter()
        self.bias: nn.Parameter | UninitializedParameter = UninitializedParameter()

    def forward(self, h: Tensor) -> Tensor:
        """Map features to units."""
        if isinstance(self.weight, UninitializedParameter):
            assert self.n_out is not None
            self._make(self.n_out, h.shape[-1])
        return F.linear(h, self.weight, self.bias)

    def _make(self, n_out: int, n_in: int) -> None:
        for weight, shape in ((self.weight, (n_out, n_in)), (self.bias, (n_out,))):
            assert isinstance(weight, UninitializedParameter)
            weight.materialize(shape)
            nn.init.zeros_(weight)

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *rest: Any) -> None:
        saved = state.get(f"{prefix}weight")
        if saved is not None and isinstance(self.weight, UninitializedParameter):
            self._make(*saved.shape)
        super()._load_from_state_dict(state, prefix, *rest)


def lazy_vector_encoder(n_in: int, n_hidden: int = 64) -> nn.Sequential:
    """Return a `vector_encoder` for a number of units that is known later."""
    return nn.Sequential(nn.Linear(n_in, n_hidden), nn.ReLU(), LazyUnits())


def feature_encoders(n_in: int, n_units: list[int]) -> list[nn.Module]:
    """Map features (B, n_in) to the units of fully connected layers that follow one another.

    The second encoder builds on the first one's layer, and so on: a tower of the same shape as
    the student's own, initialised like any other, as in the paper.
    """
    encoders: list[nn.Module] = []
    below: list[nn.Module] = []
    for n_out in n_units:
        layer = nn.Linear(n_in, n_out)
        encoders.append(nn.Sequential(*below, layer))
        below = [*below, layer, nn.ReLU()]
        n_in = n_out
    return encoders


class MapEncoder(nn.Module):
    """Map a region (B, C, H, W) to a map (B, n_out, *size), starting at zero: the prior itself.

    With a `budget`, the variances exp(map) of an example have mean 1: h* does not say how much
    noise there is, only where.
    """

    def __init__(
        self,
        n_in: int,
        n_out: int,
        size: tuple[int, int],
        n_hidden: int = 16,
        kernel: int = 3,
        budget: bool = False,
    ) -> None:
        super().__init__()
        self.size = size
        self.budget = budget
        self.layers = nn.Sequential(
            nn.Conv2d(n_in, n_hidden, kernel, padding=kernel // 2),
            nn.ReLU(),
            _zero(nn.Conv2d(n_hidden, n_out, kernel, padding=kernel // 2)),
        )

    def forward(self, xstar: Tensor) -> Tensor:
        """Resize to the map's size, then convolve."""
        offsets: Tensor = self.layers(F.interpolate(xstar, self.size, mode="area"))
        if self.budget:
            n = math.prod(offsets.shape[1:])
            offsets = offsets - offsets.logsumexp((1, 2, 3), keepdim=True) + math.log(n)
        return offsets
