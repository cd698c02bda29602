"""Partial x*: arms that differ only in the fraction of training rows with x*."""

from collections.abc import Iterator

from lupi.report.numbers import difference, difference_interval
from lupi.verdict.results import ArmSummary, Cell, Summary
from lupi.verdict.roles import is_candidate
from lupi.verdict.units import is_share


def families(summary: Summary) -> dict[str, list[ArmSummary]]:
    """Return the arms of each family, by increasing fraction of rows with x*."""
    found: dict[str, list[ArmSummary]] = {}
    for arm in sorted(summary.arms, key=lambda arm: arm.xstar_frac):
        if arm.family:
            found.setdefault(arm.family, []).append(arm)
    return found


def percent(frac: float) -> str:
    """Format a fraction of the rows: `4 %`."""
    return f"{100 * frac:g} %"


def cell_at(arm: ArmSummary, size: int) -> Cell:
    """Return the cell of an arm at one size."""
    return next(cell for cell in arm.cells if cell.size == size)


def partial_sentences(summary: Summary) -> Iterator[str]:
    """Yield a sentence for each family and size: at which fractions x* helps, and the gain."""
    for family, arms in families(summary).items():
        candidates = [arm for arm in arms if is_candidate(arm)]
        for size in summary.sizes if candidates else ():
            if all(cell_at(arm, size).mean is None for arm in candidates):
                continue
            helped = [arm for arm in candidates if cell_at(arm, size).verdict == "helps"]
            if helped:
                where = ", ".join(percent(arm.xstar_frac) for arm in helped)
                text = f"x* helps when {where} of the rows have it"
            else:
                text = "x* helps at no measured fraction"
            for arm in dict.fromkeys([*helped[:1], candidates[-1]]):  # the smallest, and all x*
                text += f"; {percent(arm.xstar_frac)}: {_gain(arm, size, summary)}"
            yield f"{family}, n = {size}: {text}."


def _gain(arm: ArmSummary, size: int, summary: Summary) -> str:
    cell = cell_at(arm, size)
    against = cell.deciding
    if against is None:
        return "not measured yet"
    unit = "points" if is_share(summary.metric) else summary.metric
    text = f"{difference(against.mean, summary.metric)} {unit} against {against.other}"
    return f"{text}, 95 % interval {difference_interval(against, summary.metric)}"
