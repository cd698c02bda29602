"""Restrict x to a region, or remove a region from x.

x is images (B, C, H, W) with pixels in [0, 1] and a region (B, 1, H, W), or texts (B, T) of word
numbers, where 0 is no word, and a region (B, 1, T). A word belongs to a region from 0.5 on.
"""

import torch
from torch import Tensor


def restrict(x: Tensor, region: Tensor) -> Tensor:
    """Return x restricted to the region: other pixels are black, other words are removed."""
    return x * region if x.is_floating_point() else x * (region[:, 0] >= 0.5)


def without(x: Tensor, region: Tensor) -> Tensor:
    """Return x without the region: its pixels are black, its words are removed."""
    return x * (1 - region) if x.is_floating_point() else x * (region[:, 0] < 0.5)


def draw_span(region: Tensor, chance: Tensor) -> Tensor:
    """Return one span of each region of words (B, 1, T): a run of words that belong to it.

    Args:
        region: empty ones stay empty.
        chance: (B,) in [0, 1), by which the span is chosen.
    """
    inside = region[:, 0] >= 0.5  # (B, T)
    before = torch.cat([torch.zeros_like(inside[:, :1]), inside[:, :-1]], 1)
    number = (inside & ~before).cumsum(1)  # (B, T): the first span is 1
    chosen = (chance * number[:, -1]).floor() + 1
    return (inside & (number == chosen[:, None]))[:, None].to(region.dtype)
