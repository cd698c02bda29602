"""Networks for vectors: a perceptron with hidden layers, and a linear one."""

from collections import OrderedDict

from torch import Tensor, nn

from lupi.nn.networks.vgg import he_init


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


class MLP(nn.Module):
    """Perceptron with dropout after every hidden layer.

    `trunk` has the hidden layers but the last; `head` the last one and the output.

    Args:
        n_in: length of x.
        n_outputs: classes, or numbers that describe a distribution.
        n_hidden: units of each hidden layer.
        n_layers: hidden layers, two or more.
        dropout: Bernoulli rate after each of them.
    """

    def __init__(
        self, n_in: int, n_outputs: int, n_hidden: int = 64, n_layers: int = 2, dropout: float = 0.5
    ) -> None:
        super().__init__()
        trunk: OrderedDict[str, nn.Module] = OrderedDict()
        for i in range(1, n_layers):
            trunk |= _layer(i, n_in, n_hidden, dropout)
            n_in = n_hidden
        head = _layer(n_layers, n_in, n_hidden, dropout)
        head["out"] = nn.Linear(n_hidden, n_outputs)
        self.trunk, self.head = nn.Sequential(trunk), nn.Sequential(head)
        self.apply(he_init)
        # First predictions are near zero: equal classes, or the mean of a standardised target.
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
