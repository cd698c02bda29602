"""Boxes as privileged information: the mask and the coordinates.

Pixel boxes are (x0, y0, x1, y1) with the end excluded. The mask of a box is the form that goes
into a batch; coordinates are derived from it.
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
