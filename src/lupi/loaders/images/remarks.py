"""Remarks about the regions of images that a reader of the verdict must know."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lupi.facts import list_names
from lupi.loaders.images.batches import Images

AT_ONCE = 1024
"""Masks read at a time."""


def region_remarks(images: Images, classes: Sequence[str]) -> list[str]:
    """Return what having a region says about the class, if it tells classes apart."""
    if images.has_region is None:
        return []
    marked = images.has_region & ~_empty_regions(images)
    shares = np.array([marked[images.y == label].mean() for label in range(len(classes))])
    never = [name for name, share in zip(classes, shares, strict=True) if share == 0]
    always = [name for name, share in zip(classes, shares, strict=True) if share > 0]
    if not never or not always:
        return []
    is_empty = images.has_region[np.isin(images.y, [classes.index(name) for name in never])].all()
    which = f"only images of {list_names(always)} have a region, those of {list_names(never)} never"
    what = (
        f"from empty masks that nothing is there in {list_names(never)}"
        if is_empty
        else f"nothing about {list_names(never)} unless empty masks say that nothing is there"
    )
    return [
        f"{which}: whether there is one tells the class. No student sees regions, but noise that "
        "follows them (het-dropout) differs by class in training: trust a gain only if it also "
        f"beats the shuffled control. Methods that learn the region (multitask-mask) learn {what}"
    ]


def _empty_regions(images: Images) -> NDArray[np.bool_]:
    """Return (N,) which images have an empty region: annotators found nothing."""
    if images.masks is None:
        boxes = images.boxes.reshape(len(images.y), -1, 4)
        filled = np.all(boxes[..., 2:] > boxes[..., :2], axis=-1)
        return np.asarray(~np.any(filled, axis=1))
    masks = images.masks
    starts = range(0, len(masks), AT_ONCE)
    parts = [~masks[start : start + AT_ONCE].any((1, 2)) for start in starts]
    return np.concatenate(parts) if parts else np.zeros(0, np.bool_)
