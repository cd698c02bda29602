"""Results by subgroup of the test rows, as text for the terminal and the page."""

from collections.abc import Iterator
from typing import NamedTuple

from lupi.verdict.results import Difference, Summary
from lupi.verdict.roles import is_candidate
from lupi.verdict.units import difference, interval, score

NOTE = (
    "Intervals are of each subgroup by itself and are not corrected for the number of subgroups: "
    "take them as a hint where to look, not as a verdict."
)


class SubgroupRow(NamedTuple):
    """One arm that trains with x*, on one subgroup."""

    arm: str
    subgroup: str
    plain: str
    mean: str
    over_plain: str
    over_control: str
    """Against the control with the best score."""


def subgroup_rows(summary: Summary, size: int) -> Iterator[SubgroupRow]:
    """Yield a row for each arm that trains with x* and each subgroup, at one size."""
    for name in (arm.name for arm in summary.arms if is_candidate(arm)):
        for group in summary.subgroups:
            arms = {arm.name: arm.at(size) for arm in group.arms}
            cell, plain = arms[name], arms[summary.reference]
            over = {found.other: found for found in cell.differences}
            closest = min(over.values(), key=lambda found: found.mean, default=None)
            yield SubgroupRow(
                name,
                group.name,
                score(plain.mean, summary.metric),
                score(cell.mean, summary.metric),
                _gain(over.get(summary.reference), summary.metric),
                _gain(closest, summary.metric),
            )


def _gain(found: Difference | None, metric: str) -> str:
    if found is None:
        return ""
    return f"{difference(found.mean, metric)} ({interval(found.interval, metric)})"
