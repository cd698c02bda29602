"""Networks for vectors: a perceptron with hidden layers, and a linear one."""

import math
from collections import OrderedDict

import torch
from torch import Tensor, nn

from lupi.networks.weights import he_init


class Linear(nn.Sequential):
    """A linear function of x, with dropout (the site `drop`) before it.

    Args:
        n_in: length of x.
        n_outputs: classes, or numbers that describe a distribution.
        dropout: Bernoulli rate of x.
    """

    def __init__(self, n_in: int, n_outputs: int, dropout: float = 0.0) -> None:
        out = nn.Linear(n_in, n_outputs)
        super().__init__(OrderedDict(drop=nn.Dropout(dropout), out=out))
        nn.init.zeros_(out.bias)
        nn.init.normal_(out.weight, std=0.01)


class Periodic(nn.Module):
    """Periodic embeddings of numbers, which help to fit functions that are not smooth.

        x_j  ->  x_j,  ReLU(W [sin(2 pi c_j x_j), cos(2 pi c_j x_j)] + b)

    Gorishniy, Rubachev, Babenko: "On Embeddings for Numerical Features in Tabular Deep Learning",
    NeurIPS 2022: frequencies c are learned, and all columns share W. Addition: x itself is kept.

    Args:
        n_in: length of x.
        n_waves: number of frequencies per number.
        n_channels: length of each embedding.
        spread: standard deviation of the initial frequencies.
    """

    def __init__(
        self, n_in: int, n_waves: int = 8, n_channels: int = 4, spread: float = 0.1
    ) -> None:
        super().__init__()
        self.n_out = n_in * (1 + n_channels)
        self.frequencies = nn.Parameter(spread * torch.randn(n_in, n_waves))
        self.mix = nn.Linear(2 * n_waves, n_channels)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, n_in) to (B, n_out)."""
        angles = 2 * math.pi * x[..., None] * self.frequencies
        waves = self.mix(torch.cat([angles.sin(), angles.cos()], -1)).relu()
        return torch.cat([x, waves.flatten(1)], 1)


class MLP(nn.Module):
    """Perceptron with dropout after every hidden layer.

    `trunk` has the hidden layers but the last; `head` the last one and the output.

    Args:
        n_in: length of x.
        n_outputs: classes, or numbers that describe a distribution.
        n_hidden: units of each hidden layer.
        n_layers: hidden layers, two or more.
        dropout: Bernoulli rate after each of them.
        periodic: whether `trunk.embed` adds periodic embeddings to x.
    """

    def __init__(
        self,
        n_in: int,
        n_outputs: int,
        n_hidden: int = 64,
        n_layers: int = 2,
        dropout: float = 0.5,
        periodic: bool = False,
    ) -> None:
        super().__init__()
        trunk: OrderedDict[str, nn.Module] = OrderedDict()
        if periodic:
            trunk["embed"] = embed = Periodic(n_in)
            n_in = embed.n_out
        for i in range(1, n_layers):
            trunk |= _layer(i, n_in, n_hidden, dropout)
            n_in = n_hidden
        head = _layer(n_layers, n_in, n_hidden, dropout)
        head["out"] = nn.Linear(n_hidden, n_outputs)
        self.trunk, self.head = nn.Sequential(trunk), nn.Sequential(head)
        self.apply(he_init)
        # Initial predictions are near zero: equal classes, or the mean of a standardised target.
        nn.init.normal_(head["out"].weight, std=0.01)  # type: ignore[arg-type]

    def forward(self, x: Tensor) -> Tensor:
        """Map vectors (B, n_in) to outputs (B, n_outputs)."""
        output: Tensor = self.head(self.trunk(x))
        return output


def _layer(i: int, n_in: int, n_out: int, dropout: float) -> OrderedDict[str, nn.Module]:
    return OrderedDict(
        {
            f"fc{i}": nn.Linear(n_in, n_out),
            f"relu{i}": nn.ReLU(),
            f"drop{i}": nn.Dropout(dropout),
        }
    )
