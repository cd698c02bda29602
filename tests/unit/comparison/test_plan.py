from typing import Any

import pytest

from lupi.comparison.plan import make_plan
from lupi.comparison.settings import ComparisonSettings
from lupi.errors import LupiError


def raw(**changes: Any) -> dict[str, Any]:
    return {
        "name": "small",
        "task": {"name": "digits"},
        "network": {"width": 4},
        "train": {"epochs": 2},
        "arms": {
            "no-xstar": {"method": "no-xstar", "network": {"dropout": 0.4}},
            "het": {"method": "het-dropout", "controls": ["shuffled"], "train": {"lr": 0.1}},
        },
        "sizes": [40, 20],
        "seeds": 2,
        **changes,
    }


def test_arms_times_sizes_times_seeds() -> None:
    plan = make_plan(ComparisonSettings.parse(raw(), ""))
    assert [arm.name for arm in plan.arms] == ["no-xstar", "het", "het/shuffled"]
    assert len({planned.run_id for planned, _ in plan.runs}) == 3 * 2 * 2
    assert [planned.seed for planned, _ in plan.runs] == [0] * 6 + [1] * 6
    assert plan.metric.name == "accuracy"


def test_a_control_has_the_settings_of_its_arm() -> None:
    plan = make_plan(ComparisonSettings.parse(raw(), ""))
    real, shuffled = (
        next(run for planned, run in plan.runs if planned.arm == arm)
        for arm in ("het", "het/shuffled")
    )
    assert shuffled.control == "shuffled"
    assert shuffled.model_copy(update={"control": "real"}) == real


def test_arms_override_network_and_training() -> None:
    plan = make_plan(ComparisonSettings.parse(raw(), ""))
    plain = next(run for planned, run in plan.runs if planned.arm == "no-xstar")
    het = next(run for planned, run in plan.runs if planned.arm == "het")
    network = plain.resolved()["network"]
    assert (network["dropout"], network["width"]) == (0.4, 4)
    assert (het.train.lr, het.train.epochs) == (0.1, 2)


def test_arms_may_have_schedules_of_their_own() -> None:
    schedules = {"adaptive": {"patience": 3}, "fixed": {"step_epochs": 10}}
    arms = {
        name: {"method": "no-xstar", "train": {"schedule": name, **train}}
        for name, train in schedules.items()
    }
    plan = make_plan(ComparisonSettings.parse(raw(arms=arms), ""))
    by_arm = {planned.arm: run.train for planned, run in plan.runs}
    assert (by_arm["adaptive"].schedule, by_arm["adaptive"].patience) == ("adaptive", 3)
    assert (by_arm["fixed"].schedule, by_arm["fixed"].step_epochs) == ("fixed", 10)


def test_fractions_become_arms() -> None:
    arms = {
        "no-xstar": {"method": "no-xstar"},
        "het": {
            "method": "het-dropout",
            "controls": ["shuffled"],
            "xstar_fracs": [0, 1, 0.04, 0.005],
        },
    }
    plan = make_plan(ComparisonSettings.parse(raw(arms=arms), ""))
    names = ["het@0%", "het@0.5%", "het@0.5%/shuffled", "het@4%", "het@4%/shuffled"]
    assert [arm.name for arm in plan.arms][1:6] == names
    by_name = {arm.name: arm for arm in plan.arms}
    assert by_name["het@4%"].xstar_frac == 0.04
    assert by_name["het@4%"].family == "het"
    assert by_name["het@4%/shuffled"].family == "het/shuffled"
    assert not by_name["het@0%"].uses_xstar  # it saw no x*: a control
    assert by_name["no-xstar"].family == ""
    fractions = {planned.arm: run.xstar_frac for planned, run in plan.runs}
    assert fractions["het@0.5%/shuffled"] == 0.005


def test_published_scores_decide_no_run() -> None:
    paper = {"source": "a table", "scores": {"het/shuffled": {20: 0.5}}}
    quoting = make_plan(ComparisonSettings.parse(raw(paper=paper), ""))
    plain = make_plan(ComparisonSettings.parse(raw(), ""))
    assert quoting.runs == plain.runs
    assert quoting.settings.paper is not None


def test_training_may_depend_on_the_size() -> None:
    changed = raw(train_by_size={20: {"batch_size": 8, "lr": 0.2}})
    plan = make_plan(ComparisonSettings.parse(changed, ""))
    trained = {(planned.arm, planned.size): run.train for planned, run in plan.runs}
    assert (trained["no-xstar", 20].batch_size, trained["no-xstar", 40].batch_size) == (8, 64)
    assert (trained["no-xstar", 20].lr, trained["het", 20].lr) == (0.2, 0.1)  # the arm's own wins


def arm(**changes: Any) -> dict[str, Any]:
    return {"arms": {"mine": {"method": "het-dropout", **changes}}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train_by_size": {30: {}}}, "train_by_size: 30 is not in `sizes`"),
        ({"sizes": []}, "sizes: got \\[\\]"),
        ({"sizes": [20, 20]}, "sizes: got .*duplicate value"),
        ({"sizes": [998]}, "^a training set of 998 rows was asked for; there are 997"),
        ({"seeds": 0}, "seeds: got"),
        ({"name": "../up"}, "name: got '../up'"),
        ({"armz": {}}, "armz: no such key; did you mean `arms`"),
        (arm(control="shuffled"), "arms.mine.control: no such key; did you mean `controls`"),
        (
            arm(settings={"site": ["x"]}),
            "arm mine: settings.site: no such key; did you mean `sites`",
        ),
        (arm(settings={"sites": ["fc9"]}), "arm mine: no site of the network matches 'fc9'"),
        (
            arm(settings={"sites": ["head.*"], "prior": {"inside": 0, "outside": 1}}),
            "arm mine: prior: inside and outside need sites with places; head.drop1 has no places",
        ),
        (arm(xstar_fracs=[0.5, 2]), "arms.mine.xstar_fracs.1: got 2"),
        (arm(xstar_fracs=[0.5], xstar_frac=0.1), "arms.mine: give either `xstar_frac` or"),
        (
            {"arms": {"plain": {"method": "no-xstar", "xstar_fracs": [0.5]}}},
            "arms.plain.xstar_fracs: no-xstar does not use x",
        ),
        ({"paper": {"source": "t", "scores": {"hat": {20: 0.5}}}}, "did you mean `het`"),
        ({"paper": {"source": "t", "scores": {"het": {21: 0.5}}}}, "het: 21 is not in `sizes`"),
        (
            {"arms": {"plain": {"method": "no-xstar", "controls": ["random"]}}},
            "arms.plain.controls: no-xstar does not use x",
        ),
    ],
)
def test_mistakes_show_before_anything_runs(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(LupiError, match=message):
        make_plan(ComparisonSettings.parse(raw(**changes), ""))


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("seeds", 10**9, "at most 10,000 seeds"),
        ("train", {"lr": float("nan")}, "train.lr: got nan"),
    ],
)
def test_numbers_beyond_reason_are_refused(key: str, value: object, message: str) -> None:
    with pytest.raises(LupiError, match=message):
        make_plan(ComparisonSettings.parse(raw(**{key: value}), ""))
