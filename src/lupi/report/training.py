"""Curves over epochs from the rows of metrics.jsonl: averaged over runs, and of single runs."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from lupi.records import ComparisonRecord, RunRecord
from lupi.verdict.scores import number_at
from lupi.verdict.units import score, unit

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Curve:
    """The mean of one number over runs, per epoch."""

    epochs: list[int]
    means: list[float]
    n_runs: int
    """Number of runs with the number at any epoch."""

    @property
    def moves(self) -> bool:
        """Whether the number changes from one epoch to another."""
        return min(self.means) < max(self.means)


def mean_curve(runs: Sequence[Sequence[Row]], *keys: str) -> Curve | None:
    """Average the number under `keys` over the runs that reached each epoch."""
    values: dict[int, list[float]] = {}
    n_runs = 0
    for rows in runs:
        found = False
        for row in rows:
            number, epoch = number_at(row, *keys), number_at(row, "epoch")
            if number is not None and epoch is not None:
                values.setdefault(int(epoch), []).append(number)
                found = True
        n_runs += found
    if not values:
        return None
    epochs = sorted(values)
    # Five digits are more than a screen shows, and keep the page small.
    means = [float(f"{sum(values[e]) / len(values[e]):.5g}") for e in epochs]
    return Curve(epochs, means, n_runs)


def sites_with_variance(runs: Sequence[Sequence[Row]]) -> list[str]:
    """Return the noise sites with a logged variance inside and outside the region, in order."""
    sites: dict[str, None] = {}
    for rows in runs:
        for row in rows:
            logged = row.get("sites")
            for site in logged if isinstance(logged, dict) else ():
                if number_at(row, "sites", site, "variance_inside") is not None:
                    sites[site] = None
    return list(sites)


MOST_NUMBERS = 300_000
"""Maximum number of values on a page, about 2 MB; beyond that, epochs are thinned out."""


def run_logs(
    record: ComparisonRecord, rows_of_runs: Iterable[Sequence[Row]]
) -> list[dict[str, Any]]:
    """Return the identity, the outcome and the curves of each run.

    Args:
        record: The comparison.
        rows_of_runs: The rows of metrics.jsonl, in the order of the record's runs.
    """
    logged = [_last_attempt(rows) for rows in rows_of_runs]
    n_numbers = sum(len(rows) * _width(rows[-1]) for rows in logged if rows)
    step = max(1, math.ceil(n_numbers / MOST_NUMBERS))
    return [
        {
            "id": run.plan.run_id,
            "arm": run.plan.arm,
            "size": run.plan.size,
            "seed": run.plan.seed,
            "end": _end(run, record.metric.name),
            **_curves(rows[::-1][::step][::-1]),  # the last epoch stays
        }
        for run, rows in zip(record.runs, logged, strict=True)
    ]


def _last_attempt(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of the last attempt; a diverged run may have been restarted."""
    last = rows[-1].get("attempt") if rows else None
    return [row for row in rows if row.get("attempt") == last]


def _width(row: Row) -> int:
    return 2 + len(row.get("train") or ()) + len(row.get("sites") or ())


def _curves(rows: Sequence[Row]) -> dict[str, Any]:
    parts = dict.fromkeys(part for row in rows for part in row.get("train") or ())
    sites = dict.fromkeys(site for row in rows for site in row.get("sites") or ())
    return {
        "epochs": [row.get("epoch") for row in rows],
        "loss": {part: [_short(number_at(row, "train", part)) for row in rows] for part in parts},
        "lr": [_short(number_at(row, "lr")) for row in rows],
        "variance": {
            site: [_short(_variance(number_at(row, "sites", site, "logvar_mean"))) for row in rows]
            for site in sites
        },
    }


def _variance(logvar: float | None) -> float | None:
    return None if logvar is None or logvar > 700 else math.exp(logvar)  # exp(710) overflows


def _short(value: float | None) -> float | None:
    """Round to four significant digits."""
    return None if value is None else float(f"{value:.4g}")


def _end(run: RunRecord, metric: str) -> str:
    """Return how a run ended, in words."""
    if run.failure is not None:
        return f"failed: {(run.failure.strip().splitlines() or ['no message'])[-1]}"
    if run.result is None:
        return "no result yet"
    result = run.result
    text = f"{result.get('status')} after {result.get('epochs')} epochs"
    text += f", best on validation data after {result.get('best_epoch')}"
    if result.get("restarts"):
        text += f", restarted {result['restarts']} time(s)"
    scores = {split: number_at(result, "metrics", split, metric) for split in ("val", "test")}
    text += f"; {unit(metric)}: validation {score(scores['val'], metric)}"
    text += f", test {score(scores['test'], metric)}"
    return text + ("; collapsed: its noise no longer depends on x*" * bool(result.get("collapsed")))
