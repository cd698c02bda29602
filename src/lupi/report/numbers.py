"""Formatting of numbers, for the terminal and the page. Verdicts in words use the same formats."""

from lupi.verdict.results import Difference, LabelSaving
from lupi.verdict.units import NOTHING, difference, interval, p_value, plain, score, unit

__all__ = [
    "NOTHING",
    "difference",
    "difference_interval",
    "half_width",
    "p_value",
    "plain",
    "saving",
    "saving_interval",
    "score",
    "unit",
]


def difference_interval(found: Difference, metric: str) -> str:
    """Format the interval of a difference; ends may be open with too few seeds."""
    return interval(found.interval, metric)


def half_width(interval: tuple[float, float], metric: str) -> str:
    """Format half the width of an interval, for use after ±."""
    return score((interval[1] - interval[0]) / 2, metric)


def saving(label_saving: LabelSaving | None) -> str:
    """Format a label-saving factor, or the reason why there is none."""
    if label_saving is None or label_saving.reach == "unknown":
        return NOTHING
    return label_saving.reach if label_saving.factor is None else f"{label_saving.factor:.1f}×"


def saving_interval(label_saving: LabelSaving | None) -> str:
    """Format the interval of a label-saving factor, if there is one."""
    if label_saving is None or label_saving.factor is None or label_saving.interval is None:
        return ""
    low, high = label_saving.interval
    if low == 0:  # below the smallest size, so not measured
        return "any factor" if high is None else f"{high:.1f} or less"
    return f"{low:.1f} or more" if high is None else f"{low:.1f} to {high:.1f}"
