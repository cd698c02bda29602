"""Rows of any task as a few numbers, for checks that take a second."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from lupi.core import Batch

Floats = NDArray[np.float64]

SIDE = 32
"""Maximum height and width at which edges are computed."""
CELLS = 4
"""Number of rows and columns of cells, each described by its mean colour and its edges."""
N_DIRECTIONS = 6
N_WORDS = 256
"""Number of counts that words are hashed to."""


def of_x(x: Tensor | tuple[Tensor, ...]) -> Floats:
    """Return (N, F): colours and edges of an image, counts of words, or the vector itself."""
    if isinstance(x, tuple):
        return _count_words(x[0])
    if x.dim() == 4:
        return _colours_and_edges(F.adaptive_avg_pool2d(x, min(SIDE, x.shape[-1])))
    return _count_words(x) if not x.is_floating_point() else _floats(x)


def of_vector(xstar: Tensor) -> Floats:
    """Return x* and its squares (N, 2 D), so that extremes on both sides count."""
    standard = (xstar - xstar.mean(0)) / xstar.std(0).clamp(min=1e-6)
    return _floats(torch.cat([standard, standard.clamp(-4, 4).square()], 1))


def of_target(y: Tensor) -> Floats:
    """Return (N, K): a class as an indicator, a number as itself, counts of words."""
    if y.is_floating_point():
        return _floats(y[:, None])
    if y.dim() == 2:
        return _count_words(y)
    return _floats(F.one_hot(y).double())


def inside(x: Tensor, region: Tensor) -> Floats:
    """Return features of x inside a region: counts of words, or its bounding box as an image.

    Args:
        x: Images (N, C, H, W) or words (N, T).
        region: Regions (N, 1, H, W) or (N, 1, T), 1 inside.
    """
    if x.dim() == 2:
        return _count_words(x, region[:, 0])
    n, height, width = region[:, 0].shape
    mask = region[:, 0] > 0.5
    (top, bottom), (left, right) = (_ends(mask.any(2)), _ends(mask.any(1)))
    theta = torch.zeros(n, 2, 3)  # from the grid to the box, both from -1 to 1
    theta[:, 0, 0], theta[:, 0, 2] = (right - left) / width, (left + right) / width - 1
    theta[:, 1, 1], theta[:, 1, 2] = (bottom - top) / height, (top + bottom) / height - 1
    side = min(SIDE, height)
    grid = F.affine_grid(theta, [n, x.shape[1], side, side], align_corners=False)
    return _colours_and_edges(F.grid_sample(x, grid, align_corners=False))


def _ends(inside: Tensor) -> tuple[Tensor, Tensor]:
    """Return the first True of each row (N, L), and the place after the last."""
    length = inside.shape[1]
    return inside.int().argmax(1), length - inside.flip(1).int().argmax(1)


def misplaced(region: Tensor, x: Tensor, generator: torch.Generator) -> Tensor:
    """Return regions unrelated to their rows: those of other rows, or moved within the text."""
    if x.dim() != 2:
        return region[torch.randperm(len(region), generator=generator)]
    length = (x != 0).sum(1).clamp(min=1)
    shift = (torch.rand(len(x), generator=generator) * length).long()
    place = torch.arange(x.shape[1]).expand_as(x)
    source = torch.where(place < length[:, None], (place - shift[:, None]) % length[:, None], place)
    return region[:, 0].gather(1, source)[:, None]


def with_xstar(batch: Batch) -> Batch:
    """Return the rows that have x*."""
    if batch.xstar is None or batch.has_xstar is None:
        return Batch(batch.x, batch.y)
    xstar, has = batch.privileged()
    keep = has & (xstar.flatten(1).abs().sum(1) > 0) if xstar.dim() > 2 else has
    x = tuple(part[keep] for part in batch.x) if isinstance(batch.x, tuple) else batch.x[keep]
    return Batch(x, batch.y[keep], xstar[keep], has[keep])


def _count_words(words: Tensor, weights: Tensor | None = None) -> Floats:
    """Return (N, places) counts of words by number; 0 is padding."""
    counts = torch.zeros(len(words), N_WORDS, dtype=torch.float64)
    weighted = (words != 0).double() if weights is None else (words != 0) * weights.double()
    return _floats(counts.scatter_add_(1, words * 2654435761 % N_WORDS, weighted))


def _colours_and_edges(images: Tensor) -> Floats:
    """Return (N, F): each cell's mean colour and how strong its edges are, by direction.

    A plain histogram of oriented gradients (Dalal, Triggs, CVPR 2005): each gradient counts for
    the two directions next to its own; strengths are relative to those of the whole image.
    """
    across, down = gradients(images)
    direction = torch.atan2(down, across) / torch.pi * N_DIRECTIONS
    first, share = direction.floor(), direction - direction.floor()
    strength = torch.hypot(across, down)
    edges = torch.zeros(len(images), N_DIRECTIONS, *images.shape[2:])
    edges.scatter_add_(1, first.long() % N_DIRECTIONS, strength * (1 - share))
    edges.scatter_add_(1, (first.long() + 1) % N_DIRECTIONS, strength * share)
    edges = F.adaptive_avg_pool2d(edges, CELLS)
    edges = edges / (edges.sum((1, 2, 3), keepdim=True) + 0.01 * CELLS**2)
    colours = F.adaptive_avg_pool2d(images, CELLS)
    return _floats(torch.cat([edges.sqrt().flatten(1), colours.flatten(1)], 1))


def gradients(images: Tensor) -> tuple[Tensor, Tensor]:
    """Return the differences of brightness across and down each pixel, (N, 1, H, W)."""
    padded = F.pad(images.mean(1, keepdim=True), (1, 1, 1, 1), mode="replicate")
    across = padded[..., 1:-1, 2:] - padded[..., 1:-1, :-2]
    return across, padded[..., 2:, 1:-1] - padded[..., :-2, 1:-1]


def _floats(x: Tensor) -> Floats:
    flat: Floats = x.flatten(1).double().numpy()
    return flat
