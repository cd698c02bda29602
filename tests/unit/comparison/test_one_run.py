from pathlib import Path
from typing import Any

import pytest
from test_plan import raw

from lupi.comparison.plan import make_plan, plan_run
from lupi.comparison.settings import ComparisonSettings
from lupi.errors import LupiError

NOWHERE = Path("runs/small")
WITH_SIZES: dict[str, Any] = {"train_by_size": {40: {"batch_size": 8}}}


def comparison(**changes: Any) -> ComparisonSettings:
    return ComparisonSettings.parse(raw(**changes), "")


def test_it_is_the_run_that_the_comparison_plans() -> None:
    settings = comparison(**WITH_SIZES)
    for planned, run in make_plan(settings).runs:
        name, alone = plan_run(settings, planned.arm, planned.size, planned.seed, NOWHERE)
        assert name == planned.arm
        assert alone == run


def test_defaults_are_the_first_arm_the_largest_size_and_the_first_seed() -> None:
    name, run = plan_run(comparison(seeds=[3, 5]), None, None, None, NOWHERE)
    assert (name, run.method, run.size, run.seed) == ("no-xstar", "no-xstar", 40, 3)


def test_a_size_of_its_own_is_trained_like_the_largest() -> None:
    _, run = plan_run(comparison(**WITH_SIZES), "het", 30, 7, NOWHERE)
    assert (run.size, run.seed, run.train.batch_size) == (30, 7, 8)


@pytest.mark.parametrize(
    ("arm", "size", "message"),
    [
        ("hett", None, "--arm: no arm is called `hett`; did you mean `het`"),
        ("het", 0, "size: got 0; input should be greater than or equal to 1"),
    ],
)
def test_mistakes_are_told(arm: str, size: int | None, message: str) -> None:
    with pytest.raises(LupiError, match=message):
        plan_run(comparison(), arm, size, None, NOWHERE)


def test_arms_that_are_still_to_be_tuned_are_told(tmp_path: Path) -> None:
    settings = comparison(tuning={"n_trials": 2, "seeds": 1})
    with pytest.raises(LupiError, match="are still to be tuned in"):
        plan_run(settings, "het", None, None, tmp_path)
