"""Chance that belongs to a row: the same in every epoch and in every batch.

A function of the row's number and a seed (SplitMix64: Steele, Lea, Flood, 2014), so that nothing
has to be stored, and a run that resumes has the same.
"""

import math

import torch
from torch import Tensor

from lupi.core import Batch
from lupi.errors import LupiError

GOLDEN, FIRST, SECOND = (
    bits - 2**64 for bits in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)
"""SplitMix64's constants as signed numbers."""


def numbered(row: Tensor | None, setting: str) -> Tensor:
    """Return the numbers of a batch's rows, (B,); refuse a split that does not number its rows.

    Args:
        row: of a `Batch`.
        setting: what needs it, for the message.
    """
    if row is None:
        raise LupiError(f"{setting}: it takes rows of a table or of arrays; these are not numbered")
    return row


def folds(row: Tensor, n_folds: int) -> Tensor:
    """Return the fold of each row (B,), evenly spread over 0 … n_folds - 1."""
    return _mixed(row).remainder(n_folds)


def normals(row: Tensor, n: int, seed: int) -> Tensor:
    """Return `n` standard normal numbers for each row, (B, n)."""
    places = row[:, None] * n + torch.arange(n, device=row.device)
    uniform = (_shifted(_mixed(places + _mixed(row.new_tensor(seed))), 11) + 0.5) / 2.0**53
    return math.sqrt(2) * torch.erfinv(2 * uniform.double() - 1).float()


class RandomVectors:
    """Random vectors of rows, beside x*: a control replaces x* and leaves them as they are.

    Args:
        n: their length; 0: none.
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self._seed = int(torch.randint(2**31, ())) if n else 0

    def beside(self, xstar: Tensor, batch: Batch) -> Tensor:
        """Return x* (B, D) and the rows' random vectors, (B, D + n)."""
        if not self.n:
            return xstar
        drawn = normals(numbered(batch.row, "random_dim"), self.n, self._seed)
        return torch.cat([xstar, drawn.to(xstar.dtype)], 1)


def _mixed(numbers: Tensor) -> Tensor:
    """Return 64 bits that look random for each number; sums and products wrap around."""
    bits = numbers * GOLDEN + GOLDEN
    bits = (bits ^ _shifted(bits, 30)) * FIRST
    bits = (bits ^ _shifted(bits, 27)) * SECOND
    return bits ^ _shifted(bits, 31)


def _shifted(bits: Tensor, by: int) -> Tensor:
    """Shift to the right, zeros following from the left."""
    return (bits >> by) & ((1 << (64 - by)) - 1)
