"""Regions as tensors: drawn from boxes, measured, and applied to x.

A region of images is (B, 1, H, W), 1 inside; x has pixels in [0, 1]. A region of texts is
(B, 1, T); x (B, T) are word numbers, where 0 is no word. A word belongs to a region from 0.5 on.
Pixel boxes are (x0, y0, x1, y1) with the end excluded.
"""

import torch
from torch import Tensor


def box_mask(boxes: Tensor, height: int, width: int) -> Tensor:
    """Return (B, 1, height, width): 1 inside the boxes of each row, 0 outside.

    Boxes are (B, 4), or several a row (B, K, 4); one whose end is not after its start is empty.
    """
    several = boxes[:, None] if boxes.dim() == 2 else boxes
    x0, y0, x1, y1 = several[..., None].unbind(2)  # (B, K, 1) each
    columns = torch.arange(width, device=boxes.device)
    rows = torch.arange(height, device=boxes.device)
    in_x = (columns >= x0) & (columns < x1)  # (B, K, W)
    in_y = (rows >= y0) & (rows < y1)  # (B, K, H)
    n_boxes = in_y.float().transpose(1, 2) @ in_x.float()  # (B, H, W): how many hold a pixel
    return (n_boxes > 0)[:, None].float()


def mask_box(mask: Tensor) -> Tensor:
    """Return centre x, centre y, width and height of each mask (B, 1, H, W), all in [0, 1].

    An empty mask gives zeros.
    """
    inside = mask[:, 0] > 0.5  # (B, H, W)

    def span(hit: Tensor) -> tuple[Tensor, Tensor]:
        n = hit.shape[1]
        position = torch.arange(n, device=hit.device)
        first = torch.where(hit, position, n).amin(1)
        end = torch.where(hit, position + 1, 0).amax(1)
        length = (end - first).clamp(min=0)
        centre = torch.where(length > 0, (first + end) / 2, 0.0)
        return centre / n, length / n

    cx, w = span(inside.any(1))
    cy, h = span(inside.any(2))
    return torch.stack([cx, cy, w, h], dim=1).to(mask.dtype)


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
