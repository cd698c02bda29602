"""Pooling over places: the mean, or attention that a network learns from x.

    p = softmax(score(f_1), …, score(f_P), nowhere),   z = sum_j p_j f_j + p_nowhere v

f_j are the features at place j: a cell of a map, or a word. The place "nowhere" lets a row look at
nothing, such as the image of a part without a defect; its score and its vector v are learned.
`both` returns z beside the mean of f. Attention that x* teaches (`guided-attention`) is read by
`reading_attention`; a student has the same layers whether or not anybody taught it.
"""

import contextlib
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lupi.errors import LupiError
from lupi.networks import Pooling as Pooling
from lupi.noise.sites import Site, hooked

NO_PLACE = -1e4
"""Score of padding."""


class Attended(NamedTuple):
    """Attention of a pass, before the softmax."""

    scores: Tensor
    """(B, P + 1): places in order, then nowhere."""
    grid: tuple[int, ...]
    """Sizes of the dimensions of the places: (H, W) of a map, (T,) of words; their product is P."""

    def places(self) -> Tensor:
        """Return the attention at each place, (B, *grid); with nowhere it sums to 1."""
        attention: Tensor = self.scores.softmax(1)[:, :-1].unflatten(1, self.grid)
        return attention


class PlaceScores(nn.Module):
    """Score every place, and nowhere."""

    def __init__(self, n_channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(n_channels))  # at first, the mean of all places
        self.nowhere = nn.Parameter(torch.zeros(1))

    def forward(self, places: Tensor, is_place: Tensor | None) -> Tensor:
        """Map features (B, P, C), some of them padding, to scores (B, P + 1)."""
        scores = places @ self.weight
        if is_place is not None:
            scores = scores.masked_fill(~is_place, NO_PLACE)
        return torch.cat([scores, self.nowhere.expand(len(scores), 1)], 1)


class JoinedMaps(nn.Sequential):
    """Layers whose last one, a pooling, sees several maps together, at the finest resolution.

    Args:
        layers: Layers by name, in order.
        joined: Names of the layers whose maps are joined, from fine to coarse.
    """

    def __init__(self, layers: "OrderedDict[str, nn.Module]", joined: Sequence[str]) -> None:
        super().__init__(layers)
        self._joined = frozenset(joined)

    def forward(self, x: Tensor) -> Tensor:
        """Map images (B, C, H, W) to vectors."""
        *layers, (_, pool) = self.named_children()
        maps: list[Tensor] = []
        for name, layer in layers:
            x = layer(x)
            if name in self._joined:
                maps.append(x)
        pooled: Tensor = pool(join_maps(maps))
        return pooled


def join_maps(maps: Sequence[Tensor]) -> Tensor:
    """Concatenate maps (B, C, H, W) of several strides, repeated to the size of the first."""
    size = maps[0].shape[2:]
    return torch.cat([maps[0], *(F.interpolate(m, size, mode="nearest") for m in maps[1:])], 1)


class MeanPooling(nn.Module):
    """Average the features of all places; the site `places` is before it."""

    def __init__(self, n_channels: int) -> None:
        super().__init__()
        self.places = Site()
        self.n_outputs = n_channels

    def forward(self, features: Tensor, is_place: Tensor | None = None) -> Tensor:
        """Pool a map (B, C, H, W), or words (B, T, C) of which `is_place` (B, T) are words."""
        features = self.places(features)
        if features.dim() == 4:
            return features.mean((2, 3))
        return mean_of_places(features, is_place)


def build_pooling(kind: Pooling, n_channels: int) -> "MeanPooling | AttentionPooling":
    """Return a pooling of features with `n_channels` channels."""
    if kind == "mean":
        return MeanPooling(n_channels)
    return AttentionPooling(n_channels, beside_mean=kind == "both")


class AttentionPooling(nn.Module):
    """Average the features of all places, weighted by attention.

    Noise enters at the site `places`, before scores and average.

    Args:
        n_channels: Channels of the features.
        beside_mean: Whether the mean of all places is returned, too.
    """

    def __init__(self, n_channels: int, beside_mean: bool = False) -> None:
        super().__init__()
        self.places = Site()
        self.scores = PlaceScores(n_channels)
        self.nowhere = nn.Parameter(torch.zeros(n_channels))
        self.beside_mean = beside_mean
        self.n_outputs = n_channels * (2 if beside_mean else 1)

    def forward(self, features: Tensor, is_place: Tensor | None = None) -> Tensor:
        """Pool a map (B, C, H, W), or words (B, T, C) of which `is_place` (B, T) are words."""
        features = self.places(features)
        if features.dim() == 4:
            features = features.permute(0, 2, 3, 1)
        places = features.flatten(1, -2)  # (B, P, C)
        attention = self.scores(places, is_place).softmax(1)  # (B, P + 1)
        seen: Tensor = (attention[:, None, :-1] @ places)[:, 0]
        seen = seen + attention[:, -1:] * self.nowhere
        if not self.beside_mean:
            return seen
        return torch.cat([seen, mean_of_places(places, is_place)], 1)


def mean_of_places(places: Tensor, is_place: Tensor | None) -> Tensor:
    """Return the mean (B, C) of features (B, P, C), without padding."""
    if is_place is None:
        return places.mean(1)
    weight = is_place.to(places.dtype)[..., None]  # (B, P, 1)
    return (places * weight).sum(1) / weight.sum(1).clamp(min=1)


def find_pooling(net: nn.Module, who: str) -> dict[str, AttentionPooling]:
    """Return the attention poolings of a network by name; raise an error if there are none.

    Args:
        net: The student.
        who: The method that needs one.
    """
    found = {name: m for name, m in net.named_modules() if isinstance(m, AttentionPooling)}
    if not found:
        raise LupiError(
            f"{who} teaches a student where to look, but this one averages over all places; "
            "set `network.pooling: attention` (or `both`), or use a `lupi.AttentionPooling` in "
            "your own network"
        )
    return found


@contextlib.contextmanager
def reading_attention(net: nn.Module) -> Iterator[list[Attended]]:
    """Collect the attention of every pooling in passes inside a `with` block."""
    seen: list[Attended] = []
    grids: dict[str, tuple[int, ...]] = {}

    def note_grid(name: str, module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        shape = inputs[0].shape
        grids[name] = tuple(shape[2:]) if len(shape) == 4 else (shape[1],)

    def note(name: str, module: nn.Module, inputs: Any, output: Tensor) -> None:
        seen.append(Attended(output, grids[name]))

    pools = {name: m for name, m in net.named_modules() if isinstance(m, AttentionPooling)}
    places = {name: pool.places for name, pool in pools.items()}
    scores = {name: pool.scores for name, pool in pools.items()}
    with hooked(places, note_grid), hooked(scores, note):
        yield seen


def teach(attended: Attended, region: Tensor) -> Tensor:
    """Return the cross-entropy (B,) between regions (B, 1, …) and attention."""
    inside = at_places(region, attended.grid).flatten(1)  # (B, P)
    nowhere = (inside.sum(1, keepdim=True) == 0).to(inside.dtype)
    target = torch.cat([inside, nowhere], 1)
    target = target / target.sum(1, keepdim=True)
    return -(target * attended.scores.log_softmax(1)).sum(1)


def at_places(region: Tensor, grid: tuple[int, ...]) -> Tensor:
    """Return a region (B, 1, …) over the places of a map or text, (B, *grid).

    A cell of a map belongs to the region as far as any of its pixels does.
    """
    if tuple(region.shape[2:]) == grid:
        return region[:, 0]
    pool = F.adaptive_max_pool2d if len(grid) == 2 else F.adaptive_max_pool1d
    pooled: Tensor = pool(region, grid)
    return pooled[:, 0]


@torch.no_grad()
def attention_of(net: nn.Module, x: Tensor) -> Tensor | None:
    """Return where a network looks, (B, *grid); None if it has no attention.

    Of several poolings, the last one decides.
    """
    with reading_attention(net) as seen:
        net(x)
    return seen[-1].places() if seen else None
