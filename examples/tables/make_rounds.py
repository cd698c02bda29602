"""Delivery rounds, made up: several of each driver, on many days, each with its number of parcels.

    python examples/tables/make_rounds.py rounds.csv

writes a table whose columns are `driver`, `day`, `km`, `stops`, `van`, `parcels`, what is known
after a round only (`rain`, `traffic`), and the `delay` of its parcels in minutes.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd


def make_rounds(n_drivers: int = 30, n_rounds: int = 12, seed: int = 0) -> pd.DataFrame:
    """Return `n_rounds` of each driver."""
    rng = np.random.default_rng(seed)
    n = n_drivers * n_rounds
    driver = np.repeat(np.arange(n_drivers), n_rounds)
    rain, traffic = rng.exponential(2, n), rng.normal(size=n)
    km, stops, parcels = rng.uniform(5, 90, n), rng.integers(5, 40, n), rng.integers(10, 200, n)
    van = rng.choice(["old", "new", "bike"], n)
    habit = rng.normal(0, 4, n_drivers)[driver]  # so rounds of one driver are alike
    slow = np.select([van == "old", van == "bike"], [1.3, 1.8], 1.0)
    delay = slow * (0.2 * km + 0.3 * stops) + 2 * rain + 3 * traffic + habit
    delay += rng.normal(0, 30, n) / np.sqrt(parcels)  # the mean of many parcels is more precise
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 360, n), unit="D")
    return pd.DataFrame(
        {
            "driver": [f"d{i:02}" for i in driver],
            "day": day.strftime("%Y-%m-%d"),
            "km": km.round(1),
            "stops": stops,
            "van": van,
            "parcels": parcels,
            "rain": rain.round(2),
            "traffic": traffic.round(2),
            "delay": delay.round(1),
        }
    )


if __name__ == "__main__":
    make_rounds().to_csv(Path(sys.argv[1]), index=False)
