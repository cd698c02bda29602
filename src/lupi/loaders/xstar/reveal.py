"""Append x* to x, for oracles."""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Generator

from lupi.core import Batch, Split, Splits
from lupi.errors import LupiError


def append_xstar(batch: Batch) -> Batch:
    """Append x*, and whether the row has x*, to the channels of x.

    Where x is a tuple of tensors, they are two more of them; where it is words, all are a tuple.
    """
    x, (xstar, has) = batch.x, batch.privileged()
    if isinstance(x, tuple):
        return batch._replace(x=(*x, xstar, has))
    if not x.is_floating_point():
        return batch._replace(x=(x, xstar, has))
    if x.dim() not in (2, 4):
        raise LupiError(
            f"x* can be shown beside vectors (B, F) and images (B, C, H, W); x is {x.dim()}-D"
        )
    places = x.shape[2:]  # (H, W), or nothing
    shown = [x]
    for values in (xstar, has[:, None]):
        if values.dim() < x.dim():  # (B, D) -> (B, D, H, W)
            values = values.view(*values.shape, *[1] * len(places)).expand(-1, -1, *places)
        shown.append(values.to(x.dtype))
    return batch._replace(x=torch.cat(shown, dim=1))


class _Revealed:
    """A split whose x contains x*."""

    def __init__(self, split: Split) -> None:
        self._split = split

    def __len__(self) -> int:
        return len(self._split)

    def batches(self, batch_size: int, shuffle: Generator | None = None) -> Iterator[Batch]:
        return map(append_xstar, self._split.batches(batch_size, shuffle))


def reveal(splits: Splits) -> Splits:
    """Append x* to x in every split; for an oracle only."""
    train, val, test = map(_Revealed, (splits.train, splits.val, splits.test))
    return replace(splits, train=train, val=val, test=test, also={})
