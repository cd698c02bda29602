"""The units of metrics: how scores are formatted, and which differences matter."""

import re

from lupi.errors import LupiError

AT_MOST_ONE = ("auc", "r2", "f1", "f1_macro", "average_precision", "calibration_error")
"""Scores up to 1 that are usually written with three decimals, not in percent."""
RELATIVE_MARGIN = 0.01
"""Margin relative to the plain model's score, for metrics such as errors and losses."""


def is_share(metric: str) -> bool:
    """Whether it is a share of correct predictions: in percent, with differences in points."""
    return re.search(r"accuracy|^top[-_ ]?\d+", metric) is not None


def is_at_most_one(metric: str) -> bool:
    """Whether it is at most 1 and written with three decimals."""
    return metric.removeprefix("weighted_") in AT_MOST_ONE


def is_out_of_100(metric: str) -> bool:
    """Whether it is out of 100, like translation scores, and written with one decimal."""
    return re.match(r"bleu|chrf|meteor", metric) is not None


def default_margin(metric: str, plain: float) -> float:
    """Return the default margin: one point, or 1 % of the plain score.

    Args:
        metric: Name of the metric.
        plain: Mean score of the plain model.
    """
    if is_share(metric) or is_at_most_one(metric):
        return 0.01
    return 1.0 if is_out_of_100(metric) else RELATIVE_MARGIN * abs(plain)


def gain_in_own_unit(gain: float | None, metric: str) -> float:
    """Convert a gain, such as points of accuracy, to a difference of scores.

    Args:
        gain: The gain; None means two points.
        metric: Name of the metric.
    """
    if is_share(metric):
        return (2.0 if gain is None else gain) / 100
    if is_at_most_one(metric):
        if gain is not None and gain >= 1:
            raise LupiError(
                f"--gain: got {gain:g}, but {metric} is at most 1: a gain of two points is 0.02"
            )
        return 0.02 if gain is None else gain
    if is_out_of_100(metric):
        return 2.0 if gain is None else gain
    if gain is None:
        raise LupiError(f"--gain is required for {metric}: the smallest relevant difference")
    return gain
