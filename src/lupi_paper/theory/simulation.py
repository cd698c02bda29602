"""The oracle of section 5 in a linear problem where x* is the noise level.

    x ~ N(0, I),   y = w.x + s * eps,   eps ~ N(0, 1),   s ~ uniform(floor, 1),   x* = s

The section's oracle divides by the variance that x* tells, so that every row has unit variance.
Here that is least squares with weights 1/s^2. Risk is the mean distance of the prediction from the
noise-free target, E|(w_hat - w).x|, a Lipschitz loss whose best value is 0, known exactly.

    without    ordinary least squares                                       n^-1/2
    oracle     weights 1/s^2: n rows hold information sum 1/s^2 ~ n^2       n^-1
    shuffled   the same with another row's s: a control for the weighting
    dropout    the section read literally: multiplicative noise on the output, of variance 1/s^2;
               in expectation a penalty sum (w.x)^2 / s^2

With floor > 0 a row's information is bounded by 1/floor^2, and the oracle returns to n^-1/2 after
about 1/floor rows. With squared loss every exponent doubles.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from lupi.settings import Settings

Floats = NDArray[np.float64]
SIZES = (128, 256, 512, 1024, 2048, 4096, 8192)
N_RESAMPLES = 2000
ROWS_AT_A_TIME = 2**20


class OracleSettings(Settings):
    """The simulated problem."""

    sizes: tuple[Annotated[int, Field(ge=100, le=100_000)], ...] = Field(SIZES, min_length=2)
    """Training rows."""
    n_repeats: int = Field(200, ge=10, le=10_000)
    """Number of problems for each size."""
    n_features: int = Field(5, ge=1, le=50)
    """Length of x."""
    floor: float = Field(0.0, ge=0, le=1)
    """The smallest standard deviation of the noise; the largest is 1."""
    seed: int = Field(0, ge=0)


@dataclass(frozen=True, slots=True)
class EstimatorRisk:
    """Risk of one estimator by number of rows."""

    name: str
    risks: tuple[float, ...]
    """Mean over the repeats, for each size."""
    intervals: tuple[tuple[float, float], ...]
    """95 %, bootstrap over the repeats."""
    slope: float
    """Least-squares slope of log risk by log n."""
    slope_interval: tuple[float, float]


def simulate(settings: OracleSettings) -> list[EstimatorRisk]:
    """Measure the risk of each estimator; the same settings give the same numbers."""
    by_size = [_risks(n, settings) for n in settings.sizes]
    rng = np.random.default_rng([settings.seed, 0])
    names = list(by_size[0])
    return [_measured(name, [risks[name] for risks in by_size], settings, rng) for name in names]


def _risks(n: int, settings: OracleSettings) -> dict[str, Floats]:
    """Return the risk of each estimator, (n_repeats,)."""
    at_once = max(1, ROWS_AT_A_TIME // n)
    parts = []
    for first in range(0, settings.n_repeats, at_once):
        rng = np.random.default_rng([settings.seed, n, first])
        parts.append(_draw(n, min(at_once, settings.n_repeats - first), settings, rng))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _draw(
    n: int, n_problems: int, settings: OracleSettings, rng: np.random.Generator
) -> dict[str, Floats]:
    w = rng.normal(size=(n_problems, settings.n_features))
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    x = rng.normal(size=(n_problems, n, settings.n_features))
    s = 1.0 - (1.0 - settings.floor) * rng.random(size=(n_problems, n))  # never 0
    y = (x @ w[:, :, None])[:, :, 0] + s * rng.normal(size=s.shape)
    trust, ones = s**-2.0, np.ones_like(s)

    def risk(weights: Floats, penalty: Floats | float = 0.0) -> Floats:
        gram = np.swapaxes(x * (weights + penalty)[:, :, None], 1, 2) @ x  # (problems, F, F)
        moment = np.swapaxes(x, 1, 2) @ (weights * y)[:, :, None]  # (problems, F, 1)
        error = np.linalg.solve(gram, moment)[:, :, 0] - w
        # x is standard normal: E|error.x| = |error| sqrt(2/pi)
        return np.asarray(np.linalg.norm(error, axis=1) * np.sqrt(2 / np.pi), dtype=np.float64)

    return {
        "without": risk(ones),
        "oracle": risk(trust),
        "shuffled": risk(rng.permuted(trust, axis=1)),
        "dropout": risk(ones, penalty=trust),
    }


def _measured(
    name: str, risks: Sequence[Floats], settings: OracleSettings, rng: np.random.Generator
) -> EstimatorRisk:
    means = np.array([values.mean() for values in risks])
    draws = np.stack(
        [
            values[rng.integers(values.size, size=(N_RESAMPLES, values.size))].mean(axis=1)
            for values in risks
        ],
        axis=1,
    )  # (N_RESAMPLES, sizes)
    low, high = np.quantile(draws, (0.025, 0.975), axis=0)
    slopes = _slopes(settings.sizes, draws)
    ends = np.quantile(slopes, (0.025, 0.975))
    return EstimatorRisk(
        name,
        tuple(means.tolist()),
        tuple(zip(low.tolist(), high.tolist(), strict=True)),
        float(_slopes(settings.sizes, means[None])[0]),
        (float(ends[0]), float(ends[1])),
    )


def _slopes(sizes: Sequence[int], risks: Floats) -> Floats:
    """Return the log-log slope of each row of risks (k, sizes)."""
    log_n = np.log(sizes)
    centred = log_n - log_n.mean()
    return np.asarray(np.log(risks) @ centred / (centred @ centred), dtype=np.float64)
