import json
from pathlib import Path
from typing import Any

import pytest

from lupi.comparison.engines.local import local_engine
from lupi.comparison.phases import missing_jobs, open_records, phases, tune
from lupi.comparison.plan import Plan, check_settings, make_plan
from lupi.comparison.settings import ComparisonSettings
from lupi.comparison.tuning import TuningSettings, list_candidates
from lupi.errors import LupiError
from lupi.files import write_json
from lupi.methods.registry import methods
from lupi.records import read_comparison
from lupi.search import Range
from lupi.train.settings import RunSettings
from made_runs import run_from
from small_comparison import run_plan

RAW: dict[str, Any] = {
    "name": "small",
    "task": {"name": "digits"},
    "network": {"width": 2},
    "train": {"epochs": 1, "batch_size": 16},
    "arms": {
        "no-xstar": {"method": "no-xstar"},
        "het": {
            "method": "het-dropout",
            "controls": ["shuffled"],
            "search": {"settings.prior": [0.25, 0.5, 2], "train.lr": {"low": 0.001, "high": 0.01}},
        },
    },
    "sizes": [20, 40],
    "seeds": 2,
    "tuning": {"n_trials": 3, "seeds": 2},
}


def plan_of(**changes: Any) -> Plan:
    return make_plan(ComparisonSettings.parse({**RAW, **changes}, ""))


def pretend(plan: Plan, folder: Path, best: dict[str, int], score: float = 0.5) -> None:
    """Write the results of all trials: `best` says which candidate of each arm wins."""
    winners = {f"{arm} #{number}" for arm, number in best.items()}
    for planned, _ in plan.trials:
        accuracy = score + 0.1 * (planned.arm in winners)
        result = {"format": 1, "metrics": {"val": {"accuracy": accuracy}}}
        write_json(folder / planned.run_id / "result.json", result)


def test_every_arm_has_the_same_budget_and_is_tried_as_given_first() -> None:
    plan = plan_of()
    arms = [candidate.arm for candidate in plan.candidates]
    assert arms == ["no-xstar"] * 3 + ["het"] * 3 + ["het/shuffled"] * 3
    assert all(candidate.changes == {} for candidate in plan.candidates if not candidate.number)
    assert len({planned.run_id for planned, _ in plan.trials}) == 9 * 2
    real, shuffled = plan.candidates[3:6], plan.candidates[6:]
    assert [c.changes for c in real] == [c.changes for c in shuffled]
    assert plan.candidates == plan_of().candidates  # chance is seeded


def test_a_control_has_its_own_settings_and_is_tuned_from_them() -> None:
    arms: dict[str, Any] = {**RAW["arms"]}
    own: dict[str, Any] = {"settings": {"prior": 0.7}, "train": {"lr": 0.02}}
    own["search"] = {"settings.beta": [0.1, 0.2]}
    arms["het"] = {**arms["het"], "controls": {"shuffled": own}, "settings": {"beta": 0.1}}
    plan = plan_of(arms=arms)
    runs = {planned.arm: run for planned, run in plan.runs}
    assert runs["het/shuffled"].settings.prior == 0.7  # type: ignore[attr-defined]
    assert runs["het/shuffled"].settings.beta == 0.1  # type: ignore[attr-defined]
    assert (runs["het"].train.lr, runs["het/shuffled"].train.lr) != (0.02, 0.02)
    assert runs["het"].settings.prior != 0.7  # type: ignore[attr-defined]
    first = {planned.arm: run for planned, run in plan.trials}["het/shuffled #0"]
    assert first.settings.prior == 0.7  # type: ignore[attr-defined]
    tried = [c.changes for c in plan.candidates if c.arm == "het/shuffled"]
    assert tried == [{}, {"settings.beta": 0.2}]
    arms["het"]["controls"] = {"shuffled": {"settings": {"prior": {"inside": 0, "outside": 2}}}}
    assert len(plan_of(arms=arms).candidates) == 9  # by the ranges of the method
    arms["het"]["controls"] = {"shuffled": {"settings": {"bta": 1}}}
    with pytest.raises(LupiError, match="het/shuffled"):
        plan_of(arms=arms)


def test_trials_have_seeds_of_their_own_and_read_no_test_rows() -> None:
    plan = plan_of(seeds=[0, 10_000])
    assert {planned.seed for planned, _ in plan.trials} == {10_001, 10_002}
    assert {planned.size for planned, _ in plan.trials} == {20}  # the lower of two in the middle
    assert all(run.trial for _, run in plan.trials)
    assert not any(run.trial for _, run in plan.runs)


def test_more_trials_go_on_from_fewer() -> None:
    few, many = plan_of(), plan_of(tuning={"n_trials": 5, "seeds": 3}, seeds=4)
    for candidate in few.candidates:
        (same,) = [c for c in many.candidates if c.name == candidate.name]
        assert same.run_ids[:2] == candidate.run_ids


def test_the_choice_is_recorded_before_the_first_run(tmp_path: Path) -> None:
    plan = plan_of()
    assert tune(plan, tmp_path) is None
    with open_records(plan, tmp_path) as jobs:
        assert len(jobs) == 18
    pretend(plan, tmp_path, {"no-xstar": 1, "het": 2, "het/shuffled": 1})
    (tuned,) = phases(plan, tmp_path)
    with open_records(tuned, tmp_path) as jobs:
        assert len(jobs) == 3 * 2 * 2
        record = read_comparison(tmp_path)
    assert [c.name for c in record.candidates if c.chosen] == [
        "no-xstar #1",
        "het #2",
        "het/shuffled #1",
    ]
    changes = {c.name: c.changes for c in record.candidates}
    settings = {planned.arm: run.resolved() for planned, run in tuned.runs}
    assert settings["no-xstar"]["network"]["dropout"] == changes["no-xstar #1"]["network.dropout"]
    assert settings["het"]["settings"]["prior"] == changes["het #2"]["settings.prior"]
    assert settings["het/shuffled"]["train"]["lr"] == changes["het/shuffled #1"]["train.lr"]
    assert settings["het/shuffled"]["control"] == "shuffled"
    assert missing_jobs(tuned, tmp_path)[0].settings["trial"] is False


def test_a_size_keeps_training_of_its_own(tmp_path: Path) -> None:
    plan = plan_of(train_by_size={40: {"epochs": 7}})
    pretend(plan, tmp_path, {"het": 1})
    tuned = tune(plan, tmp_path)
    assert tuned is not None
    assert {(run.size, run.train.epochs) for _, run in tuned.runs} == {(20, 1), (40, 7)}


def test_of_equals_the_settings_as_given_are_chosen(tmp_path: Path) -> None:
    plan = plan_of()
    pretend(plan, tmp_path, {})
    tuned = tune(plan, tmp_path)
    assert tuned is not None
    assert [planned.run_id for planned, _ in tuned.runs] == [
        planned.run_id for planned, _ in plan_of(tuning=None).runs
    ]


def test_controls_may_share_what_is_chosen_for_real_xstar(tmp_path: Path) -> None:
    plan = plan_of(tuning={"n_trials": 3, "seeds": 1, "controls": "shared"})
    assert {candidate.arm for candidate in plan.candidates} == {"no-xstar", "het"}
    pretend(plan, tmp_path, {"het": 2})
    tuned = tune(plan, tmp_path)
    assert tuned is not None
    real, shuffled = (
        next(run for planned, run in tuned.runs if planned.arm == arm)
        for arm in ("het", "het/shuffled")
    )
    assert shuffled == real.model_copy(update={"control": "shuffled"})
    assert shuffled.resolved()["settings"]["prior"] != 1.0


def test_trials_without_a_result_are_named(tmp_path: Path) -> None:
    plan = plan_of()
    steps = phases(plan, tmp_path)
    assert next(steps) is plan
    with pytest.raises(LupiError, match="every trial; without one: no-xstar #0 seed 10000"):
        next(steps)


def test_from_trials_to_runs(tmp_path: Path) -> None:
    raw = {"sizes": [20], "seeds": 1, "tuning": {"n_trials": 2, "seeds": 1}}
    plan = plan_of(**raw)
    done = [
        event.run_id
        for event in run_plan(plan, tmp_path, local_engine(1))
        if event.what == "finished"
    ]
    assert len(done) == 6 + 3
    trial = json.loads((tmp_path / done[0] / "result.json").read_text())
    assert set(trial["metrics"]) == {"val"}
    assert not (tmp_path / done[0] / "checkpoint").exists()
    run = json.loads((tmp_path / done[-1] / "result.json").read_text())
    assert set(run["metrics"]) == {"val", "test"}
    assert run_plan(plan, tmp_path, local_engine(1)) == []


def given(method: str, **changes: Any) -> RunSettings:
    raw = {"task": RAW["task"], "method": method, "size": 20, "seed": 0, **changes}
    return run_from(raw)


@pytest.mark.parametrize("method", sorted(methods()))
def test_both_ends_of_declared_ranges_are_valid(method: str) -> None:
    space = {
        key: [choices.low, choices.high] if isinstance(choices, Range) else list(choices)
        for key, choices in methods()[method].search.items()
    }
    assert space
    assert len(list(list_candidates("arm", given(method), space, n_trials=2))) == 2
    assert len(list(list_candidates("arm", given(method), None, n_trials=9))) == 9


def test_a_prior_with_keys_is_not_replaced_by_a_number() -> None:
    run = given(
        "het-dropout",
        settings={"prior": {"inside": 0, "outside": 1}, "sites": ["trunk.site2"]},
    )
    tried = list(list_candidates("het", run, None, n_trials=4))
    assert [sorted(changes) for changes, _ in tried] == [[], *[["settings.beta"]] * 3]
    assert all(
        settings.resolved()["settings"]["prior"] == run.resolved()["settings"]["prior"]
        for _, settings in tried
    )


def test_a_small_space_is_tried_as_a_whole() -> None:
    tried = list(list_candidates("a", given("no-xstar"), {"network.dropout": [0.1, 0.2, 0.3]}, 6))
    assert [changes.get("network.dropout") for changes, _ in tried[:1]] == [None]
    assert {changes.get("network.dropout", 0.2) for changes, _ in tried} == {0.1, 0.2, 0.3}
    assert len(tried) == 3  # 0.2 is the network's own
    assert len(list(list_candidates("a", given("no-xstar"), {}, 6))) == 1


def test_the_middle_size() -> None:
    assert TuningSettings().trial_size([75, 150, 300]) == 150
    assert TuningSettings().trial_size([20, 10]) == 10
    assert TuningSettings(size=7).trial_size([20, 10]) == 7


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tuning": {"n_trials": 1}}, "tuning.n_trials: got 1"),
        ({"tuning": {"trials": 3}}, "tuning.trials: no such key; did you mean `n_trials`"),
        ({"search": {"dropout": [1]}}, "arms.no-xstar.search: got the key 'dropout'"),
        (
            {"search": {"network.dropuot": [1]}},
            "search: network.dropuot: no such key",
        ),
        ({"search": {"network.dropout": [3]}}, "arms.no-xstar.search: network.dropout: got 3"),
        ({"search": {"seed.x": [3]}}, "arms.no-xstar.search: got the key 'seed.x'"),
    ],
)
def test_mistakes_show_without_data(changes: dict[str, Any], message: str) -> None:
    raw = {**RAW, "task": {"name": "tiny-imagenet", "root": "nowhere"}}
    if "search" in changes:
        raw["arms"] = {"no-xstar": {"method": "no-xstar", **changes}}
    else:
        raw |= changes
    with pytest.raises(LupiError, match=message):
        check_settings(ComparisonSettings.parse(raw, ""))


def test_a_value_that_no_network_has_shows_before_anything_runs() -> None:
    arm = {"method": "het-dropout", "search": {"settings.sites": [["fc9"]]}}
    with pytest.raises(LupiError, match="arm het #1: no site of the network matches 'fc9'"):
        plan_of(arms={"no-xstar": {"method": "no-xstar"}, "het": arm})


def test_tuning_may_be_a_sentence() -> None:
    plan = plan_of(tuning="by hand, on validation rows")
    assert plan.is_tuned
    assert plan.trials == []
