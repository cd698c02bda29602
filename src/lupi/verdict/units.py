"""Metrics and their units: direction, format of scores and differences, relevant differences.

Headlines, tables, pages and JSON readers use these functions, so one number is written one way.
"""

import re
from typing import TYPE_CHECKING

from lupi.errors import LupiError

if TYPE_CHECKING:
    from lupi.verdict.results import LabelSaving

SYNONYMS = {
    "acc": "accuracy",
    "top1": "accuracy",
    "top_1": "accuracy",
    "roc_auc": "auc",
    "auroc": "auc",
    "au_roc": "auc",
    "ap": "average_precision",
    "pr_auc": "average_precision",
    "auprc": "average_precision",
    "map": "average_precision",
    "f1_score": "f1",
    "macro_f1": "f1_macro",
    "f1_macro_score": "f1_macro",
    "r_2": "r2",
    "r2_score": "r2",
    "r_squared": "r2",
    "ece": "calibration_error",
}
"""Other names of metrics, in lower case with underscores."""
AT_MOST_ONE = (
    *("auc", "r2", "f1", "f1_macro", "f1_micro", "f1_weighted", "average_precision", "mcc"),
    *("calibration_error", "precision", "recall", "kappa", "dice", "iou", "ndcg"),
)
"""Scores up to 1 that are usually written with three decimals, not in percent."""
LOWER_IS_BETTER = re.compile(
    r"loss|error|(^|_)(err|rmse|mse|mae|mape|nll|wer|cer|ter|fid|ppl|perplexity|brier|entropy|"
    r"deviance|regret|distance|latency|crps|rmsle|msle|medae)($|_)|cross_entropy"
)
PERCENT = " in %"
"""Ends the name of a share that is given in percent, so from 0 to 100."""
RELATIVE_MARGIN = 0.01
"""Margin relative to the plain model's score, for metrics such as errors and losses."""
NOTHING = "–"
"""Placeholder for a missing number."""


def canonical(metric: str) -> str:
    """Return the usual name of a metric: `accuracy` for "Acc", `auc` for "ROC AUC"."""
    name = re.sub(r"[^a-z0-9]+", "_", metric.lower().replace("²", "2")).strip("_")
    name = re.sub(r"^(test|val|valid|validation|eval|weighted)_", "", name)
    return SYNONYMS.get(name, name)


def lower_is_better(metric: str) -> bool:
    """Whether the name is that of an error, a loss or a distance."""
    return LOWER_IS_BETTER.search(canonical(metric)) is not None


def is_share(metric: str) -> bool:
    """Whether it is a share of correct predictions: in percent, with differences in points."""
    return not metric.endswith(PERCENT) and _is_accuracy(metric)


def is_at_most_one(metric: str) -> bool:
    """Whether it is at most 1 and written with three decimals."""
    return not metric.endswith(PERCENT) and canonical(metric) in AT_MOST_ONE


def is_out_of_100(metric: str) -> bool:
    """Whether it is out of 100, like translation scores, and written with one decimal."""
    is_translation = re.match(r"bleu|sacrebleu|chrf|meteor", canonical(metric)) is not None
    return metric.endswith(PERCENT) or is_translation


def _is_accuracy(metric: str) -> bool:
    return re.search(r"accuracy|^top_?\d+", canonical(metric)) is not None


def in_percent(metric: str) -> str:
    """Return the name of this metric if its scores are given in percent."""
    return metric if is_out_of_100(metric) else f"{metric}{PERCENT}"


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


def score_in_words(value: float, metric: str) -> str:
    """Format a score for a sentence: `61.2 %`."""
    is_percent = is_share(metric) or metric.endswith(PERCENT)
    return f"{score(value, metric)}{' %' * is_percent}"


def difference(value: float | None, metric: str) -> str:
    """Format a difference with its sign; one that would round to zero gets one digit."""
    if value is None:
        return NOTHING
    shown = 100 * value if is_share(metric) else value
    text = score(abs(value), metric)
    if float(text) == 0 and abs(shown) >= 1e-9:
        text = f"{abs(shown):.1g}"
        text = f"{float(text):f}".rstrip("0") if "e" in text and abs(shown) >= 1e-6 else text
    return f"-{text}" if value < 0 and float(text) else f"+{text}"


def interval(ends: tuple[float | None, float | None], metric: str) -> str:
    """Format the interval of a difference: `+6.9 to +7.1`, or `+6.9 or more`."""
    low, high = ends
    if low is None and high is None:
        return "open at both ends"
    if low is None or high is None:
        words = "or less" if low is None else "or more"
        return f"{difference(high if low is None else low, metric)} {words}"
    return f"{difference(low, metric)} to {difference(high, metric)}"


def half_width(interval: tuple[float, float], metric: str) -> str:
    """Format half the width of an interval, for use after ±."""
    return score((interval[1] - interval[0]) / 2, metric)


def saving(found: "LabelSaving | None") -> str:
    """Format a label-saving factor, or the reason why there is none."""
    if found is None or found.reach == "unknown":
        return NOTHING
    return found.reach if found.factor is None else f"{found.factor:.1f}×"


def saving_interval(found: "LabelSaving | None") -> str:
    """Format the interval of a label-saving factor, if there is one."""
    if found is None or found.factor is None or found.interval is None:
        return ""
    low, high = found.interval
    if low == 0:  # below the smallest size, so not measured
        return "any factor" if high is None else f"{high:.1f} or less"
    return f"{low:.1f} or more" if high is None else f"{low:.1f} to {high:.1f}"


def unit_in_words(metric: str) -> str:
    """Return the unit of a difference: `points of accuracy`, `in rmse`."""
    if is_share(metric) or metric.endswith(PERCENT):
        return f"points of {metric.removesuffix(PERCENT)}"
    return f"in {metric}"


def p_value(value: float | None) -> str:
    """Format a p-value; small ones as a bound."""
    if value is None:
        return NOTHING
    return "< 0.001" if value < 0.001 else f"{value:.2g}"


def plain(value: float) -> str:
    """Format any number with about three significant digits."""
    if value == 0 or 0.1 <= abs(value) < 100:
        return f"{value:.2f}" if abs(value) >= 10 else f"{value:.3f}"
    return f"{value:.3g}" if abs(value) < 0.1 else f"{value:.0f}"


def count(number: int, noun: str) -> str:
    """Return `1 seed` or `2 seeds`."""
    return f"{number:,} {noun}{'s' * (number != 1)}"
