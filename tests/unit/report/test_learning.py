from itertools import pairwise

import plotly.graph_objects as go
import pytest
from summaries import arm, cell, summary

from lupi.report.figures.learning import dodges, learning_curves, score_dots
from lupi.report.figures.styles import arm_styles


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


def test_names_are_text_not_tags() -> None:
    judged = summary(arm("<b>bold</b>", cell()))
    figure = learning_curves(judged, arm_styles(judged.arms, "no-xstar"))
    assert figure.data[1].name == "&lt;b&gt;bold&lt;/b&gt;"
    assert figure.data[1].legendgroup == "<b>bold</b>"


def oracle_at(score: float) -> go.Figure:
    oracle = arm("oracle", cell(100, score), cell(200, score), sees_xstar_at_test=True)
    judged = summary(
        arm("het-dropout", cell(100, 0.5), cell(200, 0.6)), oracle, sizes=(100, 200), trivial=None
    )
    return learning_curves(judged, arm_styles(judged.arms, "no-xstar"))


def test_an_oracle_far_away_does_not_squash_the_others() -> None:
    near, far = oracle_at(0.65), oracle_at(0.99)
    assert near.layout.yaxis.range[1] > 67
    assert not near.layout.annotations
    assert far.layout.yaxis.range[1] < 70
    (note,) = far.layout.annotations
    assert note.text == "above this range: oracle (99 at n = 100, 99 at n = 200)"


def test_one_size_is_drawn_as_dots() -> None:
    judged = summary(arm("het-dropout", cell(100, 0.6)), sizes=(100,))
    figure = score_dots(judged, arm_styles(judged.arms, "no-xstar"))
    assert [trace.mode for trace in figure.data] == ["markers", "markers"]
    assert list(figure.layout.yaxis.ticktext) == ["no-xstar", "het-dropout"]
    assert figure.data[1].x == pytest.approx((60.0,))
    assert figure.data[1].error_x.array == pytest.approx((2.0,))
