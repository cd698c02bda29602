"""The probability of the verdict "helps" for a given gain, by simulation.

    score of an arm for a seed = effect of the seed on all arms + noise of the arm

The effect of the seed cancels in paired differences, so only the arms' noise is simulated. The
simulated comparisons are judged by the same rule: sign flips, every control, all arms and sizes.
"""

from collections.abc import Callable, Sequence

import numpy as np

from lupi.design import Looks
from lupi.verdict.statistics.family import threshold
from lupi.verdict.statistics.paired import SEED, Floats, p_above_zero
from lupi.verdict.verdict import ALPHA, seeds_needed

N_SIMULATIONS = 500
"""Number of simulations; a power of 80 % is then accurate to within 4 points."""
MOST_SEEDS = 64
N_SETS = 2**11
"""Maximum number of sets of seeds; if there are more, this many are drawn at random."""
FIRST_SHARE = Looks((1,)).first_share


def chance_to_help(
    gain: float,
    noise: Sequence[float],
    n_controls: int,
    n_seeds: int,
    correlations: Sequence[float] | None = None,
    n_other_arms: int = 0,
) -> Floats:
    """Return the probability of "helps" at each size, for a gain over every control.

    Args:
        gain: In the unit of the metric, higher is better; the same at every size.
        noise: Standard deviation of the noise of an arm, for each size.
        n_controls: Number of controls.
        n_seeds: Number of seeds of each arm.
        correlations: Correlation between two seeds, for each size; by default 0.
        n_other_arms: Number of other arms with x* (without a gain), for the correction.
    """
    rng = np.random.default_rng(SEED)
    p_values = []
    for spread, correlation in zip(noise, correlations or [0.0] * len(noise), strict=True):
        own = rng.normal(0, spread, size=(N_SIMULATIONS, 1 + n_controls, n_seeds))
        # The correlation between seeds does not show in their spread.
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
    """Return the smallest number of seeds with this power; None if more than MOST_SEEDS.

    Args:
        chances: Function from the number of seeds to the power at each size.
        place: Index of the size.
        power: The required power.
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
