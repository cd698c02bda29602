"""Formatting of numbers, for the terminal and the page."""

from lupi.verdict.summary import Difference, LabelSaving
from lupi.verdict.units import is_at_most_one, is_out_of_100, is_share

NOTHING = "–"
"""Placeholder for a missing number."""


def unit(metric: str) -> str:
    """Return the metric with its unit, for axes and column headers."""
    return f"{metric}, %" if is_share(metric) else metric


def score(value: float | None, metric: str) -> str:
    """Format a score: `61.2` for a share or BLEU, otherwise at least three significant digits."""
    if value is None:
        return NOTHING
    if is_at_most_one(metric):
        return f"{value:.3f}"
    if is_out_of_100(metric):
        return f"{value:.1f}"
    return f"{100 * value:.1f}" if is_share(metric) else plain(value)


def difference(value: float | None, metric: str) -> str:
    """Format a difference of scores with its sign."""
    if value is None:
        return NOTHING
    text = score(abs(value), metric)
    return f"-{text}" if value < 0 and float(text) else f"+{text}"


def difference_interval(found: Difference, metric: str) -> str:
    """Format the interval of a difference; ends may be open with too few seeds."""
    low, high = found.interval
    if low is None and high is None:
        return "open"
    if low is None or high is None:
        return (
            f"{difference(high, metric)} or less"
            if low is None
            else f"{difference(low, metric)} or more"
        )
    return f"{difference(low, metric)} to {difference(high, metric)}"


def half_width(interval: tuple[float, float], metric: str) -> str:
    """Format half the width of an interval, for use after ±."""
    return score((interval[1] - interval[0]) / 2, metric)


def p_value(value: float | None) -> str:
    """Format a p-value; small ones as a bound."""
    if value is None:
        return NOTHING
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


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


def plain(value: float) -> str:
    """Format any number with about three significant digits."""
    if value == 0 or 0.1 <= abs(value) < 100:
        return f"{value:.2f}" if abs(value) >= 10 else f"{value:.3f}"
    return f"{value:.3g}" if abs(value) < 0.1 else f"{value:.0f}"
