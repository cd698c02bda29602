"""The scores of a comparison by arm, size and seed. Unreadable results count as missing."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lupi.errors import LupiError
from lupi.records import ComparisonRecord, RunRecord

LARGEST = 1e100
"""A score beyond this counts as non-finite."""


@dataclass(slots=True)
class Runs:
    """The planned runs of one arm at one size."""

    scores: dict[int, float] = field(default_factory=dict)
    """Test score by seed, including diverged runs."""
    recorded: dict[str, list[float]] = field(default_factory=dict)
    """All test scores of these runs by name, including the metric."""
    n_diverged: int = 0
    n_collapsed: int = 0
    n_missing: int = 0

    @property
    def is_planned(self) -> bool:
        """Whether runs of the arm are planned at this size."""
        return bool(self.scores or self.n_missing)

    @property
    def collapsed(self) -> bool:
        """Whether at least half of the runs no longer depend on x*."""
        return bool(self.scores) and 2 * self.n_collapsed >= len(self.scores)


@dataclass(frozen=True, slots=True)
class Scores:
    """All scores of a comparison."""

    sizes: tuple[int, ...]
    seeds: tuple[int, ...]
    """In the order of arrival, which looks depend on."""
    runs: dict[tuple[str, int], Runs]
    """By arm and size."""
    sign: float
    """-1 for a metric where lower is better."""
    trivial: float | None
    warnings: tuple[str, ...]

    @property
    def n_seen(self) -> int:
        """Number of seeds with any score: a missing run costs one seed, not a look."""
        seen = {seed for runs in self.runs.values() for seed in runs.scores}
        return len(seen)

    def common_seeds(self, *cells: tuple[str, int]) -> list[int]:
        """Return the common seeds of these (arm, size) pairs."""
        return [seed for seed in self.seeds if all(seed in self.runs[c].scores for c in cells)]

    def gains(self, arm: str, size: int, seeds: Iterable[int] | None = None) -> NDArray[np.float64]:
        """Return the scores in the order of `seeds` (by default all), such that higher is better.

        NaN where there is none.
        """
        scores = self.runs[arm, size].scores
        wanted = self.seeds if seeds is None else seeds
        return self.sign * np.array([scores.get(seed, np.nan) for seed in wanted], np.float64)


def read_scores(record: ComparisonRecord, split: str = "test") -> Scores:
    """Collect the test scores of a comparison, or those of a subgroup of its test rows."""
    names = [arm.name for arm in record.arms]
    sizes = sorted({run.plan.size for run in record.runs})
    seeds = list(dict.fromkeys(run.plan.seed for run in record.runs))
    cells = {(name, size): Runs() for name in names for size in sizes}
    if len(set(names)) < len(names):
        raise LupiError(f"{record.folder} names an arm twice ({names}); rename one of them")
    metric = record.metric.name
    planned: set[tuple[str, int, int]] = set()
    trivial: list[float] = []
    warnings: list[str] = []
    for run in record.runs:
        arm, size, seed = key = (run.plan.arm, run.plan.size, run.plan.seed)
        if arm not in names or key in planned:
            problem = "is planned twice" if key in planned else "belongs to no arm"
            raise LupiError(
                f"the run {arm}, n = {size}, seed {seed} of {record.folder} {problem}; "
                "run `lupi compare` to plan the comparison again"
            )
        planned.add(key)
        _count(run, metric, split, cells[arm, size], warnings)
        if (bar := number_at(run.result, "trivial", metric)) is not None:
            trivial.append(bar)
    return Scores(
        sizes=tuple(sizes),
        seeds=tuple(seeds),
        runs=cells,
        sign=1.0 if record.metric.higher_is_better else -1.0,
        trivial=fmean(trivial) if trivial else None,
        warnings=tuple(warnings),
    )


def _count(run: RunRecord, metric: str, split: str, cell: Runs, warnings: list[str]) -> None:
    """Add one run to its cell."""
    if run.result is None:
        cell.n_missing += 1
        return
    cell.n_diverged += run.result.get("status") == "diverged"
    score = number_at(run.result, "metrics", split, metric)
    if score is None:
        cell.n_missing += 1
        warnings.append(
            f"{run.folder}: result.json has no finite test {metric}; the run counts as missing"
        )
        return
    cell.scores[run.plan.seed] = score
    for name in run.result["metrics"][split]:
        if (value := number_at(run.result, "metrics", split, name)) is not None:
            cell.recorded.setdefault(name, []).append(value)
    cell.n_collapsed += run.result.get("collapsed") is True


def number_at(document: Any, *path: str) -> float | None:
    """Return the finite number at this path of a JSON document, or None."""
    for key in path:
        if not isinstance(document, dict):
            return None
        document = document.get(key)
    if isinstance(document, bool) or not isinstance(document, int | float):
        return None
    return float(document) if abs(document) < LARGEST else None  # False for NaN too
