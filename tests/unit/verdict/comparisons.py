"""Small comparisons in memory: scores by arm and size in, a record out."""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from lupi.records import Arm, ComparisonRecord, Design, Metric, PlannedRun, RunRecord
from lupi.verdict.results import Cell, Summary

ARMS = [
    Arm("no-xstar", "no-xstar"),
    Arm("gaussian-dropout", "gaussian-dropout"),
    Arm("het-dropout", "het-dropout", uses_xstar=True),
    Arm("het-dropout/shuffled", "het-dropout", control="shuffled", uses_xstar=True),
    Arm("distillation", "distillation", uses_xstar=True),
    Arm("oracle", "oracle", uses_xstar=True, sees_xstar_at_test=True),
]
WIGGLE = (0.000, 0.011, -0.007, 0.004, -0.012, 0.009, 0.003, -0.005)
"""What a seed adds to the score of every arm."""


def around(mean: float, n_seeds: int = 8, own: bool = False) -> list[float]:
    """Scores of one arm at one size with this mean, one per seed.

    A seed adds the same to all arms, and something small to the scores of each mean; with `own`,
    something else.
    """
    chance = random.Random(f"{mean} {own}")
    scores = [wiggle + chance.uniform(-0.003, 0.003) for wiggle in WIGGLE[:n_seeds]]
    return [mean + score - fmean(scores) for score in scores]


def result(score: object, metric: str = "accuracy", **changes: Any) -> dict[str, Any]:
    """The content of a result.json."""
    document: dict[str, Any] = {
        "format": 1,
        "status": "finished",
        "metrics": {"val": {metric: score}, "test": {metric: score}},
        "trivial": {metric: 0.1},
        "collapsed": False,
    }
    return document | changes


Results = Mapping[str, Mapping[int, Sequence[float | dict[str, Any] | None]]]


def comparison(
    results: Results, metric: Metric | None = None, warnings: Sequence[str] = ()
) -> ComparisonRecord:
    """A record from scores, whole results, or None for an unfinished run; seeds count from 0."""
    metric = metric or Metric("accuracy")
    runs = []
    for arm, sizes in results.items():
        for size, row in sizes.items():
            for seed, entry in enumerate(row):
                run_id = f"{arm.replace('/', '-')}-{size}-{seed}"
                document = result(entry, metric.name) if isinstance(entry, float) else entry
                plan = PlannedRun(run_id, arm, size, seed)
                runs.append(RunRecord(plan, Path("runs/demo") / run_id, document))
    arms = [arm for arm in ARMS if arm.name in results]
    settings = {"tuning": "by hand"}
    return ComparisonRecord(
        Path("runs/demo"),
        settings,
        arms,
        metric,
        runs,
        list(warnings),
        design=Design(n_pool=1_000_000, test="per-seed"),
    )


def cell(summary: Summary, arm: str, size: int) -> Cell:
    """One arm at one size."""
    (found,) = [c for a in summary.arms if a.name == arm for c in a.cells if c.size == size]
    return found
