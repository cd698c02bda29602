"""The three bounds by n for one set of constants, and where one is below another."""

import math
from typing import Any

from pydantic import Field

from lupi.settings import Settings
from lupi_paper.theory.bounds import Bound, bernstein, proposition_1, proposition_2, where_below
from lupi_paper.theory.simulation import OracleSettings


class BoundSettings(Settings):
    """The constants of the bounds. The defaults are only an illustration."""

    sizes: tuple[int, ...] = Field((100, 1_000, 10_000, 100_000, 1_000_000), min_length=1)
    """Numbers of training rows."""
    delta: float = 0.05
    """The probability that a bound fails, in (0, 1)."""
    max_loss: float = 1.0
    """L: the largest loss; for Bernstein the largest distance of a loss from its mean."""
    log10_cover: float = 3.0
    """log10 of K: cells of diameter `epsilon` that cover the pairs (x, y)."""
    epsilon: float = 0.001
    """Diameter of a cell, in units of x."""
    lipschitz: float = 1.0
    """Lipschitz constant of the loss in x."""
    n_outputs: int = 10
    """C: classes."""
    log10_paths: float = 6.0
    """log10 of P: paths from input to output."""
    log10_path_norm: float = 0.0
    """log10 of M_w: squared norm of the path weights."""
    xi: float = 0.05
    """Standard deviation of the output; Proposition 2 needs it at or below `delta`."""
    max_output: float = 1.0
    """M_z: the largest output."""
    epsilon_y: float = 0.0
    """Deviation of the sampled labels from their distribution."""
    loss_std: float = 0.05
    """s: standard deviation of the loss, for Bernstein."""
    simulation: OracleSettings = OracleSettings()
    """The simulated problem: `sizes`, `n_repeats`, `n_features`, `floor`, `seed`."""


def make_bounds(constants: BoundSettings) -> dict[str, Bound]:
    """Return the bounds by name."""
    c = constants
    return {
        "Proposition 1": proposition_1(
            max_loss=c.max_loss,
            log_cover=c.log10_cover * math.log(10),
            lipschitz=c.lipschitz,
            epsilon=c.epsilon,
            delta=c.delta,
        ),
        "Proposition 2": proposition_2(
            n_outputs=c.n_outputs,
            log_paths=c.log10_paths * math.log(10),
            log_path_norm=c.log10_path_norm * math.log(10),
            xi=c.xi,
            max_output=c.max_output,
            epsilon_y=c.epsilon_y,
            delta=c.delta,
        ),
        "Bernstein": bernstein(loss_std=c.loss_std, max_loss=c.max_loss, delta=c.delta),
    }


def to_json(constants: BoundSettings) -> dict[str, Any]:
    """Return the bounds at each size as base-10 logs, and where Proposition 2 is the smaller."""
    bounds = make_bounds(constants)
    below = where_below(bounds["Proposition 2"], bounds["Proposition 1"])
    return {
        "constants": constants.resolved(),
        "log10_bounds": {
            name: [value / math.log(10) for value in bound.log_at(constants.sizes).tolist()]
            for name, bound in bounds.items()
        },
        "proposition_2_is_smaller": [
            {
                "from_log10_n": begin / math.log(10),
                "until_log10_n": None if end is None else end / math.log(10),
            }
            for begin, end in below
        ],
    }
