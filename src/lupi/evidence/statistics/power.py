"""How often x* would get the verdict "helps" if it brought a given gain: the verdict, simulated.

    score of an arm for a seed = what the seed adds for every arm + noise of the arm's own

The seed's part cancels in paired differences, so a simulated comparison is drawn from the arms'
own noise alone. It is judged by the rule itself: sign flips, every control, all arms and sizes.
"""

from collections.abc import Callable, Sequence

import numpy as np

from lupi.design import Looks
from lupi.evidence.statistics.family import threshold
from lupi.evidence.statistics.paired import SEED, Floats, p_above_zero
from lupi.evidence.verdict import ALPHA, seeds_needed

N_SIMULATIONS = 500
"""A power of 80 % is then known to within 4 points."""
MOST_SEEDS = 64
N_SETS = 2**11
"""Random sets of seeds that stand for all of them, where there are more."""
FIRST_SHARE = Looks((1,)).first_share


def chance_to_help(
    gain: float,
    noise: Sequence[float],
    n_controls: int,
    n_seeds: int,
    correlations: Sequence[float] | None = None,
    n_other_arms: int = 0,
) -> Floats:
    """Return, for each size, how often an arm that gains this much over every control gets "helps".

    Args:
        gain: in the metric's own unit, higher is better; the same at every size.
        noise: for each size, the standard deviation of an arm's own noise.
        n_controls: how many arms it must beat.
        n_seeds: of each arm.
        correlations: for each size, between two seeds; by default none.
        n_other_arms: further arms with x*, which gain nothing, for which tests are corrected.
    """
    rng = np.random.default_rng(SEED)
    p_values = []
    for spread, correlation in zip(noise, correlations or [0.0] * len(noise), strict=True):
        own = rng.normal(0, spread, size=(N_SIMULATIONS, 1 + n_controls, n_seeds))
        # What two seeds have in common by shared rows does not show in their spread.
        common = rng.normal(0, spread, size=(N_SIMULATIONS, 1 + n_controls, 1))
        own += common * np.sqrt(correlation / (1 - correlation))
        differences = gain + own[:, :1] - own[:, 1:]  # (simulation, control, seed)
        found = p_above_zero(differences.reshape(-1, n_seeds), correlation, N_SETS)
        p_values.append(found.reshape(N_SIMULATIONS, n_controls).max(1) / FIRST_SHARE)
    table = np.stack(p_values, axis=1)  # (simulation, size)
    n_helps = np.zeros(len(noise))
    nothing = [1.0] * (n_other_arms * len(noise))
    for row in table.tolist():
        for i, p_value in enumerate(row):
            others = [*row[:i], *row[i + 1 :], *nothing]
            n_helps[i] += p_value <= threshold(others, ALPHA / 2)
    return n_helps / N_SIMULATIONS


def fewest_seeds(chances: Callable[[int], Floats], place: int, power: float) -> int | None:
    """Return the fewest seeds with this power at one size; None if it takes more than MOST_SEEDS.

    Args:
        chances: number of seeds to the chance at each size.
        place: which of the sizes.
        power: the chance that is wanted.
    """
    low, high = seeds_needed(1, FIRST_SHARE), MOST_SEEDS
    if chances(high)[place] < power:
        return None
    while low < high:
        middle = (low + high) // 2
        if chances(middle)[place] >= power:
            high = middle
        else:
            low = middle + 1
    return low
