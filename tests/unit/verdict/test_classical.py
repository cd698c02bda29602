"""Classical models stand beside a comparison: shown, compared, and no part of the verdict on x*."""

from dataclasses import replace

import pytest

from lupi.records import Arm, Metric
from lupi.verdict.results import Summary
from lupi.verdict.summary import summarise

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
    sentence = "gradient-boosting is better than every network at n = 100"
    assert any(warning.startswith(sentence) for warning in warnings) == said


def test_a_better_mean_alone_is_no_reason_to_ship_it() -> None:
    """0.7168 against 0.7165 was enough to say "ship that there"."""
    warnings = judged(trees=0.6003).warnings
    assert not any("is better than every network" in warning for warning in warnings)


def test_it_is_better_or_worse_and_never_helps() -> None:
    """Models that know no x* were said to help and to hurt."""
    for trees, word in ((0.7, "better than plain"), (0.4, "worse than plain")):
        arm = next(arm for arm in judged(trees).arms if arm.classical)
        assert arm.cells[0].verdict == word


def test_better_may_be_lower() -> None:
    warnings = judged(0.40, Metric("rmse", higher_is_better=False), sign=-1).warnings
    assert not any("is better than every network" in warning for warning in warnings)
    warnings = judged(0.70, Metric("rmse", higher_is_better=False), sign=-1).warnings
    assert any("is better than every network" in warning for warning in warnings)
