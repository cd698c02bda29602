import pytest

from lupi.verdict.results import LabelSaving
from lupi.verdict.units import (
    NOTHING,
    difference,
    half_width,
    is_share,
    p_value,
    plain,
    saving,
    saving_interval,
    score,
)


@pytest.mark.parametrize(
    ("metric", "share"),
    [("accuracy", True), ("top5", True), ("top-5", True), ("error", False), ("loss", False)],
)
def test_shares_are_shown_in_percent(metric: str, share: bool) -> None:
    assert is_share(metric) is share
    assert score(0.612, metric) == ("61.2" if share else "0.612")


def test_scores_of_translations_have_one_decimal() -> None:
    assert score(37.6132, "bleu") == "37.6"
    assert difference(-0.349, "bleu_lc") == "-0.3"


def test_auc_and_r2_have_three_decimals() -> None:
    assert score(0.70049, "auc") == "0.700"
    assert difference(-0.00758, "r2") == "-0.008"


def test_differences_carry_a_sign() -> None:
    assert difference(0.061, "accuracy") == "+6.1"
    assert difference(-0.061, "accuracy") == "-6.1"
    assert difference(0.0, "loss") == "+0.000"
    assert difference(None, "loss") == NOTHING


def test_a_difference_that_would_round_to_nothing_keeps_a_digit() -> None:
    assert difference(-0.0004, "accuracy") == "-0.04"  # the headline said so, the table "+0.0"
    assert difference(0.0, "accuracy") == "+0.0"


def test_half_width_of_a_lopsided_interval() -> None:
    assert half_width((0.50, 0.56), "accuracy") == "3.0"


@pytest.mark.parametrize(
    ("value", "text"), [(None, NOTHING), (0.0002, "< 0.001"), (0.0312, "0.031"), (1.0, "1")]
)
def test_p_values(value: float | None, text: str) -> None:
    assert p_value(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0.000"), (1.2345, "1.234"), (-31.28, "-31.28"), (1234.5, "1234"), (0.00123, "0.00123")],
)
def test_plain_numbers(value: float, text: str) -> None:
    assert plain(value) == text


@pytest.mark.parametrize(
    ("found", "factor", "interval"),
    [
        (None, NOTHING, ""),
        (LabelSaving("no-xstar", "unknown", None, None), NOTHING, ""),
        (LabelSaving("no-xstar", "beyond range", None, (1.5, None)), "beyond range", ""),
        (LabelSaving("no-xstar", "measured", 1.84, (1.4, 2.31)), "1.8×", "1.4 to 2.3"),
        (LabelSaving("no-xstar", "measured", 1.84, (1.4, None)), "1.8×", "1.4 or more"),
        (LabelSaving("no-xstar", "measured", 1.84, (0.0, 2.31)), "1.8×", "2.3 or less"),
        (LabelSaving("no-xstar", "measured", 1.84, (0.0, None)), "1.8×", "any factor"),
        (LabelSaving("no-xstar", "measured", 1.84, None), "1.8×", ""),
    ],
)
def test_label_saving(found: LabelSaving | None, factor: str, interval: str) -> None:
    assert saving(found) == factor
    assert saving_interval(found) == interval
