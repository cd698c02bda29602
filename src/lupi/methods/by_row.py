"""Random numbers that belong to a row: the same in every epoch and batch.

They are a function of the row number and a seed (SplitMix64: Steele, Lea, Flood, 2014), so nothing
has to be stored, and a resumed run gets the same numbers.
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
    """Return the row numbers of a batch, (B,); raise an error if rows are not numbered.

    Args:
        row: The `row` of a `Batch`.
        setting: Name of the setting that needs them, for the message.
    """
    if row is None:
        raise LupiError(
            f"{setting} needs rows of a table or of arrays; these rows are not numbered"
        )
    return row


def folds(row: Tensor, n_folds: int) -> Tensor:
    """Return the fold of each row (B,), uniform over 0 … n_folds - 1."""
    return _mixed(row).remainder(n_folds)


def normals(row: Tensor, n: int, seed: int) -> Tensor:
    """Return `n` standard normal numbers for each row, (B, n)."""
    places = row[:, None] * n + torch.arange(n, device=row.device)
    uniform = (_shifted(_mixed(places + _mixed(row.new_tensor(seed))), 11) + 0.5) / 2.0**53
    return math.sqrt(2) * torch.erfinv(2 * uniform.double() - 1).float()


class RandomVectors:
    """Fixed random vectors of rows, appended to x*; controls do not change them.

    Args:
        n: Length of the vectors; 0 for none.
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self._seed = int(torch.randint(2**31, ())) if n else 0

    def append_to(self, xstar: Tensor, batch: Batch) -> Tensor:
        """Return x* (B, D) with the rows' random vectors appended, (B, D + n)."""
        if not self.n:
            return xstar
        drawn = normals(numbered(batch.row, "random_dim"), self.n, self._seed)
        return torch.cat([xstar, drawn.to(xstar.dtype)], 1)


def _mixed(numbers: Tensor) -> Tensor:
    """Return 64 pseudo-random bits for each number; sums and products wrap around."""
    bits = numbers * GOLDEN + GOLDEN
    bits = (bits ^ _shifted(bits, 30)) * FIRST
    bits = (bits ^ _shifted(bits, 27)) * SECOND
    return bits ^ _shifted(bits, 31)


def _shifted(bits: Tensor, by: int) -> Tensor:
    """Shift to the right, filling with zeros."""
    return (bits >> by) & ((1 << (64 - by)) - 1)
