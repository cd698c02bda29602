"""A paired test that stays valid when seeds are added: one test per look."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from lupi.verdict.statistics.paired import PairedTest

Reached = Sequence[tuple[int, float]]
"""Past looks: number of seeds, share of the allowed error. See `lupi.design.Looks`."""


class SequentialTest:
    """Paired differences in the order of their seeds, tested at every past look.

    A look with share w counts with p / w and bounds of level 1 - w * alpha. By Bonferroni the
    smallest p and the narrowest bounds over all looks hold at any time.
    """

    def __init__(self, differences: ArrayLike, looks: Reached, correlation: float = 0.0) -> None:
        """Take one difference per seed; a look at j seeds uses the first j."""
        values = np.asarray(differences, dtype=np.float64)
        self._looks = [
            (PairedTest(values[:n_seeds], correlation), share) for n_seeds, share in looks
        ]
        self.n_seeds = looks[-1][0]
        """Number of seeds at the last look."""
        self.mean = self._looks[-1][0].mean
        """Mean difference over these seeds."""

    @property
    def smallest_p(self) -> float:
        """The smallest p-value possible with this number of seeds."""
        return min(1.0, min(test.smallest_p / share for test, share in self._looks))

    def p_above(self, value: float = 0.0) -> float:
        """Return the p-value of "the difference is no larger than `value`"."""
        return min(1.0, min(test.p_above(value) / share for test, share in self._looks))

    def p_below(self, value: float = 0.0) -> float:
        """Return the p-value of "the difference is no smaller than `value`"."""
        return min(1.0, min(test.p_below(value) / share for test, share in self._looks))

    def bounds(self, alpha: float) -> tuple[float, float]:
        """Return a lower and an upper bound, each of level 1 - alpha; infinite with few seeds."""
        low = max(test.low(share * alpha) for test, share in self._looks)
        high = min(test.high(share * alpha) for test, share in self._looks)
        if low > high:  # looks may contradict each other by chance: use the last one
            test, share = self._looks[-1]
            return test.low(share * alpha), test.high(share * alpha)
        return low, high
