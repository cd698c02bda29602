"""What the numbers of a metric are: how people write them, and which differences matter."""

import re

from lupi.errors import LupiError

AT_MOST_ONE = ("auc", "r2", "f1", "f1_macro", "average_precision", "calibration_error")
"""Scores up to 1 that people know with three decimals, not in percent."""
RELATIVE_MARGIN = 0.01
"""Of the plain model's score, for metrics whose unit nobody knows, such as errors and losses."""


def is_share(metric: str) -> bool:
    """Whether it is a share of right answers: written in percent, differences in points."""
    return re.search(r"accuracy|^top[-_ ]?\d+", metric) is not None


def is_at_most_one(metric: str) -> bool:
    """Whether it goes up to 1 and is written with three decimals."""
    return metric.removeprefix("weighted_") in AT_MOST_ONE


def is_out_of_100(metric: str) -> bool:
    """Whether it goes up to a hundred already, as scores of translations do: one decimal."""
    return re.match(r"bleu|chrf|meteor", metric) is not None


def default_margin(metric: str, plain: float) -> float:
    """Return below what a difference is practically none: one point, or 1 % of the plain score.

    Args:
        metric: its name.
        plain: the mean score of the plain model.
    """
    if is_share(metric) or is_at_most_one(metric):
        return 0.01
    return 1.0 if is_out_of_100(metric) else RELATIVE_MARGIN * abs(plain)


def gain_in_own_unit(gain: float | None, metric: str) -> float:
    """Return a gain as people say it (points of accuracy) as a difference of scores.

    Args:
        gain: what was asked for; None: two points.
        metric: its name.
    """
    if is_share(metric):
        return (2.0 if gain is None else gain) / 100
    if is_at_most_one(metric):
        if gain is not None and gain >= 1:
            raise LupiError(
                f"--gain: got {gain:g}, but {metric} is 1 at most: a gain of two points is 0.02"
            )
        return 0.02 if gain is None else gain
    if is_out_of_100(metric):
        return 2.0 if gain is None else gain
    if gain is None:
        raise LupiError(f"--gain: say which difference in {metric} matters, in its own unit")
    return gain
