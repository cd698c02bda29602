from typing import Any

import pytest

from lupi.compare.settings import ComparisonSettings, make_plan
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
    assert (plain.network["dropout"], plain.network["width"]) == (0.4, 4)
    assert (het.train.lr, het.train.epochs) == (0.1, 2)


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
        ({"train_by_size": {30: {}}}, "train_by_size: 30 is none of the sizes"),
        ({"sizes": []}, "sizes: got \\[\\]"),
        ({"sizes": [20, 20]}, "sizes: got .*each may stand there once"),
        ({"sizes": [998]}, "arm no-xstar: a training set of 998 rows was asked for; there are 997"),
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
            arm(settings={"prior": {"inside": 0, "outside": 1}}),
            "arm mine: prior: inside and outside need sites with a map; head.drop1 has none",
        ),
        (
            {"arms": {"plain": {"method": "no-xstar", "controls": ["random"]}}},
            "arms.plain.controls: no-xstar does not use x",
        ),
    ],
)
def test_mistakes_show_before_anything_runs(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(LupiError, match=message):
        make_plan(ComparisonSettings.parse(raw(**changes), ""))
