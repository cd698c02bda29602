"""Classical models stand beside a comparison: shown, compared, and no part of the verdict on x*."""

from dataclasses import replace

import pytest

from lupi.evidence.summary import Summary, summarise
from lupi.records import Arm, Metric

from .comparisons import around, comparison

TREES = Arm("gradient-boosting", "gradient-boosting", classical=True)


def judged(trees: float, metric: Metric | None = None, sign: int = 1) -> Summary:
    results = {
        "no-xstar": {100: around(sign * 0.50)},
        "het-dropout": {100: around(sign * 0.60, own=True)},
        "het-dropout/shuffled": {100: around(sign * 0.50, own=True)},
        "oracle": {100: around(sign * 0.90)},
    }
    record = comparison(results, metric)
    with_trees = comparison({"no-xstar": {100: around(sign * trees)}}, metric).runs
    renamed = [replace(run, plan=replace(run.plan, arm=TREES.name)) for run in with_trees]
    return summarise(replace(record, arms=[*record.arms, TREES], runs=[*record.runs, *renamed]))


def test_x_star_need_not_beat_them() -> None:
    summary = judged(trees=0.70)
    het = next(arm for arm in summary.arms if arm.name == "het-dropout")
    assert het.cells[0].verdict == "helps"
    assert TREES.name not in {d.other for d in het.cells[0].differences}
    trees = next(arm for arm in summary.arms if arm.classical)
    assert [d.other for d in trees.cells[0].differences] == ["no-xstar"]


@pytest.mark.parametrize(("trees", "said"), [(0.70, True), (0.55, False), (0.40, False)])
def test_a_better_one_is_named(trees: float, said: bool) -> None:
    warnings = judged(trees).warnings
    sentence = "gradient-boosting scores better than every network at n = 100"
    assert any(warning.startswith(sentence) for warning in warnings) == said


def test_better_may_be_lower() -> None:
    warnings = judged(0.40, Metric("rmse", higher_is_better=False), sign=-1).warnings
    assert not any("scores better than every network" in warning for warning in warnings)
    warnings = judged(0.70, Metric("rmse", higher_is_better=False), sign=-1).warnings
    assert any("scores better than every network" in warning for warning in warnings)
