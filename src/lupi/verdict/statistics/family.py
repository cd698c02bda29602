"""Correction of p-values over a family of questions: every arm at every size.

Hochberg's step-up procedure (1988) tests the largest p-values first, so questions that all have
clear answers do not reduce each other's level:

    reject H if, for some r, p <= alpha / (1 + r) and at most r others are above alpha / (1 + r)

It is valid for p-values that are not negatively dependent: sizes of one seed share rows, arms share
their controls.
"""

from collections.abc import Sequence


def threshold(others: Sequence[float], alpha: float) -> float:
    """Return the largest p-value that is rejected, given the p-values of all other questions."""
    falling = [*sorted(others, reverse=True), 0.0]  # at most r are above the one at r
    return next(alpha / (1 + r) for r, other in enumerate(falling) if other <= alpha / (1 + r))


def adjusted(p_value: float, others: Sequence[float]) -> float:
    """Return the smallest alpha at which `p_value` is rejected, given all other questions."""
    rising = [0.0, *sorted(others)]
    return min(
        1.0, min((1 + r) * max(p_value, rising[len(others) - r]) for r in range(len(rising)))
    )
