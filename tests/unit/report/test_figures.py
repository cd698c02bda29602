from itertools import pairwise

import pytest
from summaries import arm, cell, summary

from lupi.report.figures import (
    NEUTRAL,
    PALETTE,
    arm_styles,
    dodges,
    epoch_curves,
    learning_curves,
    variance_curves,
)
from lupi.report.training import Curve


def test_learning_curves_show_means_and_uneven_intervals() -> None:
    judged = summary(arm("het-dropout", cell(100, 0.6), cell(200, 0.7)), sizes=(100, 200))
    figure = learning_curves(judged, arm_styles(judged.arms, "no-xstar"))
    reference, method = figure.data
    assert (reference.name, method.name) == ("no-xstar", "het-dropout")
    assert method.y == pytest.approx((60.0, 70.0))
    assert method.error_y.array == pytest.approx((2.0, 2.0))
    assert method.x == pytest.approx((100, 200), rel=0.1)
    assert method.customdata[0] == "n = 100: 60.0, 95 % interval 58.0 to 62.0"
    assert figure.layout.xaxis.type == "log"
    assert list(figure.layout.xaxis.tickvals) == [100, 200]
    low, high = figure.layout.yaxis.range
    assert 10 < low < 58
    assert high > 72


def test_a_trivial_score_is_drawn_where_it_leaves_the_curves_half_of_the_height() -> None:
    arms = (arm("het-dropout", cell(100, 0.3), cell(200, 0.6)),)
    for trivial, drawn in ((0.25, True), (-0.1, False), (0.99, False)):
        judged = summary(*arms, sizes=(100, 200), trivial=trivial)
        shapes = learning_curves(judged, arm_styles(judged.arms, "no-xstar")).layout.shapes
        assert [shape.y0 for shape in shapes] == ([pytest.approx(25)] if drawn else [])


def test_sizes_that_are_not_measured_yet_are_left_out() -> None:
    judged = summary(arm("het-dropout", cell(100, 0.6), cell(200, None)), sizes=(100, 200))
    figure = learning_curves(judged, arm_styles(judged.arms, "no-xstar"))
    assert len(figure.data[1].x) == 1
    alone = summary(arm("het-dropout", cell(100, None)), trivial=None)
    assert [trace.name for trace in learning_curves(alone, arm_styles(alone.arms, "")).data] == [
        "no-xstar"
    ]


@pytest.mark.parametrize("sizes", [[75], [75, 300], [75, 80, 300], [10, 20, 40, 80, 160, 320]])
def test_points_stay_near_their_size(sizes: list[int]) -> None:
    first, *_, last = dodges(4, sizes)
    assert first < 1 < last
    nearest = min((b / a for a, b in pairwise(sizes)), default=2)
    assert (last / first) ** 8 <= nearest
    assert len(sizes) == 1 or (last / first) ** 16 <= sizes[-1] / sizes[0]


def test_styles_tell_arms_apart() -> None:
    arms = [arm("no-xstar", uses_xstar=False), arm("gaussian", uses_xstar=False)]
    arms += [arm("het"), arm("het/shuffled", control="shuffled")]
    styles = arm_styles(arms, "no-xstar")
    assert list(styles) == [a.name for a in arms]
    assert styles["no-xstar"].colour == NEUTRAL
    assert styles["het"].colour == PALETTE[0]
    assert styles["het/shuffled"].dash == "dash"
    assert len({style.symbol for style in styles.values()}) == len(arms)
    assert len({style.colour for style in styles.values()}) == len(arms)


def test_names_are_text_not_tags() -> None:
    judged = summary(arm("<b>bold</b>", cell()))
    figure = learning_curves(judged, arm_styles(judged.arms, "no-xstar"))
    assert figure.data[1].name == "&lt;b&gt;bold&lt;/b&gt;"
    assert figure.data[1].legendgroup == "<b>bold</b>"


def test_epoch_and_variance_curves() -> None:
    judged = summary(arm("het-dropout", cell()))
    styles = arm_styles(judged.arms, "no-xstar")
    curve = Curve([1, 2], [0.5, 0.75], 3)
    figure = epoch_curves({"het-dropout": curve}, styles, "accuracy")
    assert figure.data[0].y == (50.0, 75.0)
    figure = variance_curves({"het-dropout": curve}, {"het-dropout": curve}, styles)
    assert [trace.name for trace in figure.data] == ["het-dropout inside", "het-dropout outside"]
    assert [trace.line.dash for trace in figure.data] == ["solid", "dot"]
