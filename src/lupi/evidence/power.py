"""How often x* would get the verdict "helps" if it brought a given gain: the verdict, simulated.

    score of an arm for a seed = what the seed adds for every arm + noise of the arm's own

The seed's part cancels in paired differences, so a simulated comparison is drawn from the arms'
own noise alone. It is judged by `verdict.py`: sign flips, every control, Holm over the sizes.
"""

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from lupi.evidence.answer import Difference
from lupi.evidence.paired import ROUNDING, SEED
from lupi.evidence.verdict import Grounds, judge, seeds_needed

N_SIMULATIONS = 500
"""A power of 80 % is then known to within 4 points."""
MOST_SEEDS = 64
EXACT_UP_TO = 10
"""Seeds with which all sign flips are tried; above, N_FLIPS random ones stand for them."""
N_FLIPS = 2**11
ROWS_AT_A_TIME = 64
"""Whose flips fit into a processor's cache."""

Floats = NDArray[np.float64]


def chance_to_help(gain: float, noise: Sequence[float], n_controls: int, n_seeds: int) -> Floats:
    """Return, for each size, how often an arm that gains this much over every control gets "helps".

    Args:
        gain: in the metric's own unit, higher is better; the same at every size.
        noise: for each size, the standard deviation of an arm's own noise.
        n_controls: how many arms it must beat.
        n_seeds: of each arm.
    """
    rng = np.random.default_rng(SEED)
    shape = (N_SIMULATIONS, len(noise), 1 + n_controls, n_seeds)
    own = rng.normal(size=shape) * np.asarray(noise)[:, None, None]
    differences = gain + own[:, :, :1] - own[:, :, 1:]  # (simulation, size, control, seed)
    p_values = sign_flip_ps(differences.reshape(-1, n_seeds)).reshape(differences.shape[:3])
    means = differences.mean(-1)
    n_helps = np.zeros(len(noise))
    for mean, p in zip(means, p_values, strict=True):  # (size, control) each
        grounds = [
            Grounds(
                tuple(Difference(str(k), float(m), None, float(q)) for k, (m, q) in enumerate(at)),
                n_seeds,
            )
            for at in np.stack([mean, p], axis=-1)
        ]
        n_helps += [word == "helps" for word, _ in judge(grounds, reference="0")]
    return n_helps / N_SIMULATIONS


def fewest_seeds(chances: Callable[[int], Floats], place: int, power: float) -> int | None:
    """Return the fewest seeds with this power at one size; None if it takes more than MOST_SEEDS.

    Args:
        chances: number of seeds to the chance at each size.
        place: which of the sizes.
        power: the chance that is wanted.
    """
    low, high = seeds_needed(1), MOST_SEEDS
    if chances(high)[place] < power:
        return None
    while low < high:
        middle = (low + high) // 2
        if chances(middle)[place] >= power:
            high = middle
        else:
            low = middle + 1
    return low


def sign_flip_ps(differences: Floats) -> Floats:
    """Return what `sign_flip_p` gives for each row, (row, seed) to (row,); many at once."""
    signs = _signs(differences.shape[1])
    as_far = np.empty(len(differences))
    for start in range(0, len(differences), ROWS_AT_A_TIME):
        rows = differences[start : start + ROWS_AT_A_TIME]
        observed = np.abs(rows.sum(1, keepdims=True))
        flipped = np.abs(rows @ signs.T)  # (row, flip)
        as_far[start : start + len(rows)] = (flipped >= observed * (1 - ROUNDING)).sum(1)
    if differences.shape[1] > EXACT_UP_TO:
        return (as_far + 1) / (len(signs) + 1)
    return as_far / len(signs)


@cache
def _signs(n_seeds: int) -> Floats:
    """Return sign flips, (flip, seed): all up to a common sign, which changes no |sum|."""
    if n_seeds > EXACT_UP_TO:
        return np.random.default_rng(SEED).choice([-1.0, 1.0], size=(N_FLIPS, n_seeds))
    bits = (np.arange(2 ** (n_seeds - 1))[:, None] >> np.arange(n_seeds)) & 1
    return np.where(bits == 1, -1.0, 1.0)
