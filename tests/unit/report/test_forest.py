import pytest
from summaries import arm, cell, summary

from lupi.report.figures.forest import forest_height, forest_plot
from lupi.report.figures.styles import arm_styles
from lupi.verdict.results import Difference


def difference(other: str, mean: float, low: float | None, high: float | None) -> Difference:
    return Difference(other, mean, (low, high), 0.01, 8)


def test_every_difference_of_an_arm_with_xstar_is_a_row() -> None:
    found = (difference("no-xstar", 0.09, 0.05, 0.12), difference("gaussian", 0.04, 0.01, 0.06))
    judged = summary(
        arm("het-dropout", cell(100, 0.6, differences=found, deciding_control="gaussian")),
        arm("gaussian", cell(100, 0.5, differences=found[:1]), uses_xstar=False),
    )
    figure = forest_plot(judged, arm_styles(judged.arms, "no-xstar"))
    (trace,) = figure.data
    assert trace.x == pytest.approx((9.0, 4.0))
    assert trace.error_x.arrayminus == pytest.approx((4.0, 3.0))
    assert trace.error_x.array == pytest.approx((3.0, 2.0))
    assert [symbol.endswith("-open") for symbol in trace.marker.symbol] == [True, False]
    assert list(figure.layout.yaxis.ticktext) == [
        "<b>het-dropout</b>",
        "n = 100, against no-xstar",
        "n = 100, against gaussian",
    ]
    zero = [shape for shape in figure.layout.shapes if shape.x0 == shape.x1 == 0]
    assert len(zero) == 1
    low, high = figure.layout.xaxis.range
    assert low < 0 < 12 < high
    fewer = summary(arm("het-dropout", cell(100, 0.6, differences=found[:1])))
    assert forest_height(judged) > forest_height(fewer)


def test_an_open_end_goes_to_the_edge() -> None:
    found = (difference("no-xstar", 0.02, None, 0.05),)
    judged = summary(arm("het-dropout", cell(100, 0.6, differences=found)))
    figure = forest_plot(judged, arm_styles(judged.arms, "no-xstar"))
    low, _ = figure.layout.xaxis.range
    assert figure.data[0].x[0] - figure.data[0].error_x.arrayminus[0] == pytest.approx(low)


def test_nothing_to_compare_is_no_row() -> None:
    judged = summary(arm("gaussian", cell(100, 0.5), uses_xstar=False))
    assert not forest_plot(judged, arm_styles(judged.arms, "no-xstar")).data
