"""NBA ratings: predict a player's rating of the next season; x* is how long he will play then.

From FiveThirtyEight's "NBA RAPTOR" (historical_RAPTOR_by_player.csv, CC BY 4.0):

    python examples/tables/prepare_nba.py historical_RAPTOR_by_player.csv data/nba.csv

writes a row for each season of a player that has a next one: this season's minutes, ratings and
wins, the next season's rating (`next_raptor`), and the minutes it is computed from
(`next_minutes`), which are known in training only. A rating over few minutes is imprecise.
"""

import sys
from pathlib import Path

import pandas as pd


def prepare(seasons: pd.DataFrame) -> pd.DataFrame:
    """Return each season beside the same player's next."""
    following = seasons[["player_id", "season", "raptor_total", "mp"]].rename(
        columns={"raptor_total": "next_raptor", "mp": "next_minutes"}
    )
    following["season"] -= 1
    rows = seasons.drop(columns="player_name").merge(following, on=["player_id", "season"])
    return rows.rename(columns={"mp": "minutes"})


if __name__ == "__main__":
    source, out = Path(sys.argv[1]), Path(sys.argv[2])
    out.parent.mkdir(parents=True, exist_ok=True)
    prepare(pd.read_csv(source)).to_csv(out, index=False)
