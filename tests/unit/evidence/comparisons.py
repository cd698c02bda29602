"""Small comparisons in memory: scores by arm and size in, a record out."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lupi.evidence.answer import Cell, Summary
from lupi.records import Arm, ComparisonRecord, Metric, PlannedRun, RunRecord

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
OWN_WIGGLE = (0.002, -0.001, 0.003, 0.001, -0.002, 0.000, -0.003, 0.0015)
"""What a seed adds to the score of one arm: differences have some spread."""


def around(mean: float, n_seeds: int = 8, own: bool = False) -> list[float]:
    """Scores of one arm at one size, one per seed."""
    wiggle = [
        w + (o if own else 0.0) for w, o in zip(WIGGLE[:n_seeds], OWN_WIGGLE[:n_seeds], strict=True)
    ]
    return [mean + w for w in wiggle]


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
    return ComparisonRecord(Path("runs/demo"), settings, arms, metric, runs, list(warnings))


def cell(summary: Summary, arm: str, size: int) -> Cell:
    """One arm at one size."""
    (found,) = [c for a in summary.arms if a.name == arm for c in a.cells if c.size == size]
    return found
