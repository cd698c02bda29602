"""Beijing air: tables to forecast PM2.5 some hours ahead; x* is what happens in between.

From the UCI set "PM2.5 Data of Five Chinese Cities" (BeijingPM20100101_20151231.csv):

    python examples/tables/prepare_beijing.py BeijingPM20100101_20151231.csv data/beijing

writes train.csv (2010 to 2013), val.csv (2014) and test.csv (2015). A row is an hour: its weather
and PM2.5, the PM2.5 six hours later (`target`), and PM2.5 and weather of the five hours between
(`PM+1` …), which are known in training only. Parts are whole years, as neighbouring hours are
nearly the same.
"""

import sys
from pathlib import Path

import pandas as pd

AHEAD = 6
PM = "PM_US Post"
WEATHER = ["DEWP", "HUMI", "PRES", "TEMP", "Iws"]
YEARS = {"train": range(2010, 2014), "val": [2014], "test": [2015]}


def prepare(raw: pd.DataFrame) -> pd.DataFrame:
    """Return one row per hour whose PM2.5 is known now and then."""
    rows = raw[["year", "month", "hour", "cbwd", "precipitation", *WEATHER]].copy()
    rows["PM"] = raw[PM]
    for step in range(1, AHEAD):
        rows[f"PM+{step}"] = raw[PM].shift(-step)
        for name in WEATHER:
            rows[f"{name}+{step}"] = raw[name].shift(-step)
    rows["target"] = raw[PM].shift(-AHEAD)
    return rows.dropna(subset=["PM", "target"])


if __name__ == "__main__":
    source, out = Path(sys.argv[1]), Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    prepared = prepare(pd.read_csv(source))
    for part, years in YEARS.items():
        rows = prepared[prepared["year"].isin(years)].drop(columns="year")
        rows.to_csv(out / f"{part}.csv", index=False)
