"""Which run of a comparison is shipped: validation decides."""

from pathlib import Path
from typing import Any

import pytest

from lupi.errors import LupiError
from lupi.files import read_json, write_json
from lupi.records import STUDENT, Arm, Metric, PlannedRun, write_comparison
from lupi.ship.pick import pick_run

ARMS = [
    Arm("no-xstar", "no-xstar"),
    Arm("het", "het-dropout", uses_xstar=True),
    Arm("het/shuffled", "het-dropout", "shuffled", uses_xstar=True),
    Arm("oracle", "oracle", uses_xstar=True, sees_xstar_at_test=True),
    Arm("linear", "linear", classical=True),
]
SCORES = {  # (validation at n = 20 and 40) of seeds 0 and 1; test scores are the other way round
    "no-xstar": ((0.9, 0.9), (0.50, 0.70)),
    "het": ((0.1, 0.1), (0.66, 0.64)),
    "het/shuffled": ((0.9, 0.9), (0.9, 0.9)),
    "oracle": ((0.9, 0.9), (0.99, 0.99)),
    "linear": ((0.9, 0.9), (0.95, 0.95)),
}


@pytest.fixture
def comparison(tmp_path: Path) -> Path:
    return make(tmp_path, Metric("accuracy"))


def make(folder: Path, metric: Metric, scores: Any = SCORES) -> Path:
    plan = []
    for arm in ARMS:
        for size, values in zip((20, 40), scores[arm.name], strict=True):
            for seed, score in enumerate(values):
                name = f"{arm.name}-{size}-{seed}".replace("/", "-")
                metrics = {"val": {metric.name: score}, "test": {metric.name: 1 - score}}
                write_json(folder / name / "result.json", {"format": 1, "metrics": metrics})
                if not arm.classical:
                    (folder / name / STUDENT).parent.mkdir()
                    (folder / name / STUDENT).touch()
                plan.append(PlannedRun(name, arm.name, size, seed))
    write_comparison(folder, {}, ARMS, metric, plan)
    return folder


def test_the_best_arm_by_mean_then_its_best_seed_at_the_largest_size(comparison: Path) -> None:
    picked = pick_run(comparison)
    assert picked.folder.name == "het-40-0"
    assert picked.why.startswith(
        "het, n = 40, seed 0: validation accuracy 0.66, the best of 2 seeds, and het the best of 2"
    )


def test_what_a_user_must_know_of_the_choice_is_said(comparison: Path) -> None:
    assert "missing" not in pick_run(comparison).why
    (comparison / "linear-20-0/result.json").unlink()
    result = {"format": 1, "collapsed": True, "metrics": {"val": {"accuracy": 0.66}}}
    write_json(comparison / "het-40-0/result.json", result)
    why = pick_run(comparison).why
    assert "; collapsed: x* had no effect; 1 of 20 runs are missing and may" in why


def test_what_is_asked_for_is_taken(comparison: Path) -> None:
    assert pick_run(comparison, "no-xstar").folder.name == "no-xstar-40-1"
    assert pick_run(comparison, "het", 20, 1).folder.name == "het-20-1"
    assert pick_run(comparison, "het/shuffled").folder.name == "het-shuffled-40-0"


def test_where_lower_is_better(tmp_path: Path) -> None:
    comparison = make(tmp_path, Metric("loss", higher_is_better=False))
    assert pick_run(comparison).folder.name == "no-xstar-40-0"


def test_a_run_without_a_student_is_not_taken(comparison: Path) -> None:
    (comparison / "het-40-0" / STUDENT).unlink()
    assert pick_run(comparison, "het").folder.name == "het-40-1"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("hett",), "did you mean `het`"),
        (("oracle",), "can't predict without x"),
        (("linear",), "is not a network"),
        (("het", 30), "no student at n = 30; there are 20, 40"),
        (("het", 40, 7), "no student of seed 7"),
    ],
)
def test_mistakes_are_named(comparison: Path, options: tuple[Any, ...], message: str) -> None:
    with pytest.raises(LupiError, match=message):
        pick_run(comparison, *options)


def test_a_single_run_is_itself(comparison: Path) -> None:
    run = comparison / "het-20-0"
    assert pick_run(run).folder == run
    with pytest.raises(LupiError, match="--arm is for the folder of a comparison"):
        pick_run(run, "het")


def test_larger_sizes_of_one_arm_alone_are_not_shipped_unasked(comparison: Path) -> None:
    document = read_json(comparison / "comparison.json")
    for run in document["runs"]:
        if run["arm"] == "het" and run["size"] == 40:
            run["arm"], run["seed"] = "no-xstar", run["seed"] + 2
    write_json(comparison / "comparison.json", document)
    assert pick_run(comparison).folder.name.split("-")[-2] == "20"
    assert pick_run(comparison, size=40).folder.name.split("-")[-2] == "40"


def test_the_verdict_comes_with_the_choice(comparison: Path) -> None:
    picked = pick_run(comparison)
    assert picked.judged is not None
    assert picked.judged.cell.verdict == "underpowered"
    assert picked.why.endswith("; verdict: underpowered")
    assert "can't be judged" in picked.judged.summary.headline
