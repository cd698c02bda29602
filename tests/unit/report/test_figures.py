from summaries import arm, cell, summary

from lupi.report.figures.curves import epoch_curves, variance_curves
from lupi.report.figures.styles import arm_styles
from lupi.report.training import Curve


def test_epoch_and_variance_curves() -> None:
    judged = summary(arm("het-dropout", cell()))
    styles = arm_styles(judged.arms, "no-xstar")
    curve = Curve([1, 2], [0.5, 0.75], 3)
    figure = epoch_curves({"het-dropout": curve}, styles, "accuracy")
    assert figure.data[0].y == (50.0, 75.0)
    figure = variance_curves({"het-dropout": curve}, {"het-dropout": curve}, styles)
    assert [trace.name for trace in figure.data] == ["het-dropout inside", "het-dropout outside"]
    assert [trace.line.dash for trace in figure.data] == ["solid", "dot"]
