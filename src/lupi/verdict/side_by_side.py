"""Two comparisons on the same data, compared arm by arm.

If the data are the same, a seed has the same training rows in both, so differences (second minus
first) are paired over the common seeds and corrected for the sizes of an arm. If the task has the
same name but other settings, scores are shown side by side and not tested.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from lupi.design import Looks
from lupi.errors import LupiError
from lupi.records import ComparisonRecord
from lupi.verdict.results import Difference
from lupi.verdict.rule import Question, judge_family
from lupi.verdict.scores import Scores, read_scores
from lupi.verdict.statistics import paired_differences


@dataclass(frozen=True, slots=True)
class Pair:
    """One arm at one size in two comparisons."""

    arm: str
    size: int
    first: float | None
    second: float | None
    n_pairs: int
    """Number of common seeds."""
    difference: Difference | None
    """Second minus first; positive is better. None if the data differ or no seed is common."""


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Two comparisons side by side."""

    first: str
    second: str
    metric: str
    higher_is_better: bool
    data_differ: str
    """How the data differ, so that nothing is paired; empty if they are the same."""
    pairs: tuple[Pair, ...]
    only_first: tuple[str, ...]
    """Arms that are not in the other comparison."""
    only_second: tuple[str, ...]
    warnings: tuple[str, ...]


def side_by_side(first: ComparisonRecord, second: ComparisonRecord) -> SideBySide:
    """Compare two comparisons; different tasks or metrics are an error."""
    tasks = (_task(first), _task(second))
    names = (str(tasks[0].get("name")), str(tasks[1].get("name")))
    metrics = (first.metric.name, second.metric.name)
    for what, (one, other) in (("data", names), ("metrics", metrics)):
        if one != other:
            raise LupiError(
                f"{first.folder} and {second.folder} can't be compared: their {what} are {one!r} "
                f"and {other!r}; expected two comparisons of the same task"
            )
    a, b = read_scores(first), read_scores(second)
    arms = [arm.name for arm in first.arms if arm.name in {other.name for other in second.arms}]
    sizes = sorted({*a.sizes} & {*b.sizes})
    if not arms or not sizes:
        raise LupiError(
            f"{first.folder} and {second.folder} have no common arm and size; their arms are "
            f"{_names(first)} at n = {_listed(a.sizes)} and {_names(second)} at "
            f"n = {_listed(b.sizes)}"
        )
    differ = _difference_of(*tasks)
    pairs = tuple(pair for arm in arms for pair in _pairs(arm, sizes, a, b, not differ))
    return SideBySide(
        first=str(first.folder),
        second=str(second.folder),
        metric=first.metric.name,
        higher_is_better=first.metric.higher_is_better,
        data_differ=differ,
        pairs=pairs,
        only_first=tuple(arm.name for arm in first.arms if arm.name not in arms),
        only_second=tuple(arm.name for arm in second.arms if arm.name not in arms),
        warnings=(*first.warnings, *a.warnings, *second.warnings, *b.warnings),
    )


def _pairs(arm: str, sizes: list[int], a: Scores, b: Scores, same_data: bool) -> Iterator[Pair]:
    """Yield an arm's pairs, corrected over the sizes."""
    common = {
        size: sorted(a.runs[arm, size].scores.keys() & b.runs[arm, size].scores.keys())
        for size in sizes
    }
    seeds_of_all = sorted({seed for seeds in common.values() for seed in seeds})
    questions = {}
    for size, seeds in common.items():
        if seeds and same_data:
            second, first = (side.gains(arm, size, seeds_of_all) for side in (b, a))
            questions[size] = Question(("first",), {"first": paired_differences(second, first)}, 0)
    looks = Looks((max(len(seeds_of_all), 1),)).reached(len(seeds_of_all))
    judged = dict(zip(questions, judge_family(list(questions.values()), looks), strict=True))
    for size, seeds in common.items():
        yield Pair(
            arm=arm,
            size=size,
            first=_mean(a.runs[arm, size].scores.values()),
            second=_mean(b.runs[arm, size].scores.values()),
            n_pairs=len(seeds) if same_data else 0,
            difference=judged[size].differences[0] if size in judged else None,
        )


def _mean(scores: Collection[float]) -> float | None:
    return fmean(scores) if scores else None


def _task(record: ComparisonRecord) -> Mapping[str, Any]:
    """Return the resolved task of the finished runs, or that of the settings without any."""
    task = record.task or record.settings.get("task")
    return task if isinstance(task, dict) else {}


def _difference_of(first: Mapping[str, Any], second: Mapping[str, Any]) -> str:
    keys = [key for key in {**first, **second} if first.get(key) != second.get(key)]
    return ", ".join(f"{key} {first.get(key)!r} and {second.get(key)!r}" for key in keys)


def _names(record: ComparisonRecord) -> str:
    return ", ".join(arm.name for arm in record.arms)


def _listed(sizes: tuple[int, ...]) -> str:
    return ", ".join(str(size) for size in sizes)
