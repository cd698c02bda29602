"""Networks h* from x* to offsets of the log-variance from its prior."""

import warnings

from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.parameter import UninitializedParameter

N_WORDS = 2**15
"""Number of words that `WordEncoder` distinguishes; larger vocabularies share offsets."""


def _zero(layer: nn.Linear | nn.Conv1d | nn.Conv2d) -> nn.Module:
    nn.init.zeros_(layer.weight)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer


def vector_encoder(n_in: int, n_out: int, n_hidden: int = 64) -> nn.Sequential:
    """Map a vector (B, n_in) to units (B, n_out), initialised to zero (the prior)."""
    return nn.Sequential(nn.Linear(n_in, n_hidden), nn.ReLU(), _zero(nn.Linear(n_hidden, n_out)))


class LazyUnits(LazyModuleMixin, nn.Linear):
    """A linear layer (B, n_in) to (B, n_out), created at its first pass and initialised to zero.

    It behaves as PyTorch's lazy layers, but its `out_features` must be set, too, because they do
    not follow from the input.
    """

    cls_to_become = nn.Linear
    weight: UninitializedParameter
    bias: UninitializedParameter  # type: ignore[assignment]

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a new feature, since torch 1.8
            super().__init__(0, 0, bias=False)
        self.weight, self.bias = UninitializedParameter(), UninitializedParameter()

    def reset_parameters(self) -> None:
        """Do nothing: there are no weights yet."""

    def initialize_parameters(self, input: Tensor) -> None:
        """Create the weights for inputs of this width."""
        if self.has_uninitialized_params():
            self.in_features = input.shape[-1]
            self.weight.materialize((self.out_features, self.in_features))
            self.bias.materialize((self.out_features,))
            nn.init.zeros_(self.weight)
            nn.init.zeros_(self.bias)


def lazy_vector_encoder(n_in: int, n_hidden: int = 64) -> nn.Sequential:
    """Return a `vector_encoder` whose number of units is set later."""
    return nn.Sequential(nn.Linear(n_in, n_hidden), nn.ReLU(), LazyUnits())


def feature_encoders(n_in: int, n_units: list[int]) -> list[nn.Module]:
    """Map features (B, n_in) to the units of consecutive fully connected layers.

    Each encoder builds on the layer of the previous one: a tower of the same shape as the
    student's, initialised after He et al., as in the paper.
    """
    encoders: list[nn.Module] = []
    below: list[nn.Module] = []
    for n_out in n_units:
        layer = nn.Linear(n_in, n_out)
        nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        nn.init.zeros_(layer.bias)
        encoders.append(nn.Sequential(*below, layer))
        below = [*below, layer, nn.ReLU()]
        n_in = n_out
    return encoders


class RegionEncoder(nn.Module):
    """Map a region (B, C, *places) to (B, 1, *places): linear at each place, at first zero.

    Args:
        n_in: Channels of the region.
        sizes: Sizes of the places at the site, to which the region is averaged first.
    """

    def __init__(self, n_in: int, sizes: tuple[int, ...]) -> None:
        super().__init__()
        self.sizes = sizes if len(sizes) > 1 else None  # sequences differ in length
        conv: type[nn.Conv1d | nn.Conv2d] = nn.Conv1d if len(sizes) == 1 else nn.Conv2d
        self.layers = _zero(conv(n_in, 1, 1))

    def forward(self, region: Tensor) -> Tensor:
        """Resize to the places of the site; return an offset for each of them."""
        if self.sizes is not None:
            region = F.interpolate(region, self.sizes, mode="area")
        offsets: Tensor = self.layers(region)
        return offsets


class WordEncoder(nn.Module):
    """Map a rationale and its words (B, 2, T) to (B, 1, T), initialised to zero (the prior).

    The log-variance of a word is that of its flag plus an offset of the word.
    """

    def __init__(self) -> None:
        super().__init__()
        self.flag = nn.Conv1d(1, 1, 1)
        _zero(self.flag)
        self.word = nn.Embedding(N_WORDS, 1)
        nn.init.zeros_(self.word.weight)

    def forward(self, seen: Tensor) -> Tensor:
        """Return the sum of the terms for the flag and the word."""
        of_flag: Tensor = self.flag(seen[:, :1])
        of_word: Tensor = self.word(seen[:, 1].long() % N_WORDS)  # (B, T, 1)
        return of_flag + of_word.transpose(1, 2)
