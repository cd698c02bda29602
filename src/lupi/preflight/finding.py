"""Whether a student can learn to find the region, which nobody marks at test time.

A quick model of what a place looks like (a patch of an image, a word) is fitted to half of the
rows, region against rest, and scores the places of the other half; then the halves change roles.
It has to rank places inside the region above places outside more often than a map of where regions
usually are does, row by row.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from lupi.core import Batch
from lupi.preflight.features import gradients
from lupi.preflight.relation import ALPHA, sign_test

GRID = 12
"""Maximum number of rows and columns of patches."""
MAX_CHANNELS_OF_PIXELS = 4
N_BUCKETS = 4096
"""Number of counts that words are hashed to."""
NEIGHBOURS = 5
"""Words over which scores are averaged: rationales are spans."""


class Finding(NamedTuple):
    """How well places inside and outside the region are told apart, in rows not fitted to."""

    rank: float
    """Share of pairs of a place inside and one outside whose order is right."""
    usual: float
    """The same by how often a place is inside in other rows: 0.5 is chance."""
    p_value: float
    """Of a sign test, row by row, that the first is not larger."""

    @property
    def is_found(self) -> bool:
        """Whether the model does better than the usual place (5 %)."""
        return self.p_value <= ALPHA

    def __str__(self) -> str:
        found = (
            f"a quick model ranks a place inside above one outside in {self.rank:.0%} of pairs, in "
            f"rows that it was not fitted to (by the usual place: {self.usual:.0%})"
        )
        if self.is_found:
            return f"{found}: a student can learn where to look; try guided-attention"
        return f"{found}: quick features don't find it; a pretrained network may"


def find_region(known: Batch) -> Finding | None:
    """Say whether regions can be found; all rows have one. None if nothing repeats between rows."""
    assert known.xstar is not None
    if known.x.dim() == 2:
        inside, is_place, x = known.xstar[:, 0] > 0.5, known.x > 0, known.x
        if len(x[is_place].unique()) == int(is_place.sum()):
            return None  # numbers of vectors, not of words
        score = _score_words
    else:
        x, score = _patches(known.x), _score_patches
        inside = F.adaptive_max_pool2d(known.xstar, x.shape[2:]).flatten(1) > 0.5
        is_place = torch.ones_like(inside)
    half = torch.arange(len(x)) % 2 == 0
    ranks, usual = torch.zeros(len(x)).double(), torch.zeros(len(x)).double()
    for fitted in (half, ~half):
        other = inside[~fitted], is_place[~fitted]
        scores = score(x, inside, is_place, fitted)[~fitted]
        often = inside[fitted].double().mean(0).expand_as(scores)
        ranks[~fitted], usual[~fitted] = _rank(scores, *other), _rank(often, *other)
    keep = ranks.isfinite()  # rows with places inside and outside
    wins, losses = int((ranks > usual)[keep].sum()), int((ranks < usual)[keep].sum())
    if not wins + losses:
        return None
    return Finding(ranks[keep].mean().item(), usual[keep].mean().item(), sign_test(wins, losses))


def _rank(scores: Tensor, inside: Tensor, is_place: Tensor) -> Tensor:
    """Return the share of pairs (inside, outside) in the right order, (N,); NaN without pairs."""
    found = [
        (s[i & p][:, None] - s[~i & p]).sign().mean() / 2 + 0.5
        for s, i, p in zip(scores, inside, is_place, strict=True)
    ]
    return torch.stack(found)


def _score_words(x: Tensor, inside: Tensor, is_place: Tensor, fitted: Tensor) -> Tensor:
    """Return how often each word (N, T), with its neighbours, was inside in the fitted rows."""
    buckets = x * 2654435761 % N_BUCKETS
    words = buckets[fitted][is_place[fitted]]
    n_inside = torch.bincount(words, inside[fitted][is_place[fitted]].double(), N_BUCKETS)
    n_words = torch.bincount(words, minlength=N_BUCKETS)
    rate = (n_inside + n_inside.sum() / n_words.sum()) / (n_words + 1)
    scores = rate[buckets] * is_place
    around = F.avg_pool1d(scores[:, None], NEIGHBOURS, 1, NEIGHBOURS // 2)
    return (scores + around[:, 0]) / 2


def _score_patches(x: Tensor, inside: Tensor, is_place: Tensor, fitted: Tensor) -> Tensor:
    """Score patches (N, C, h, w) by a ridge regression of region against rest, (N, P)."""
    places = x.flatten(2).transpose(1, 2).double()  # (N, P, C)
    rows = places[fitted].flatten(0, 1)
    mean, std = rows.mean(0), rows.std(0).clamp(min=1e-6)
    rows = (rows - mean) / std
    y = inside[fitted].flatten().double()
    strength = 0.01 * len(rows) * torch.eye(rows.shape[1], dtype=rows.dtype)
    weights = torch.linalg.solve(rows.T @ rows + strength, rows.T @ (y - y.mean()))
    scores: Tensor = ((places - mean) / std) @ weights
    return scores


def _patches(x: Tensor) -> Tensor:
    """Return features (N, C, h, w) of patches: of maps their channels, else colours and edges.

    Each is given for the patch and for its surroundings, relative to the whole image.
    """
    side = min(GRID, x.shape[-1])
    features = F.adaptive_avg_pool2d(x, side)
    if x.shape[1] <= MAX_CHANNELS_OF_PIXELS:
        across, down = gradients(x)
        edges = torch.cat([across.relu(), (-across).relu(), down.relu(), (-down).relu()], 1)
        parts = [F.adaptive_avg_pool2d(edges, side), F.adaptive_max_pool2d(edges, side)]
        parts += [F.adaptive_max_pool2d(x, side), -F.adaptive_max_pool2d(-x, side)]
        features = torch.cat([features, *parts], 1)
    features = features - features.mean((2, 3), keepdim=True)
    around = F.avg_pool2d(features, 3, 1, 1, count_include_pad=False)
    wide = F.avg_pool2d(features, 5, 1, 2, count_include_pad=False)
    return torch.cat([features, features.abs(), around, wide], 1)
