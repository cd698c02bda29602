import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lupi.errors import LupiError
from lupi.files import read_rows
from lupi.records import run_identity
from lupi.train.checkpoint import load_weights
from lupi.train.loop import Row
from lupi.train.run import ForbiddenSplit, run
from lupi.train.settings import RunSettings
from made_runs import run_from
from made_table import rows, write_csv

HET = {"sites": ["trunk.site2", "head.*"], "beta": 0.1}


def settings_of(method: str = "het-dropout", **changes: Any) -> RunSettings:
    raw = {
        "task": {"name": "digits"},
        "network": {"width": 4},
        "train": {"epochs": 4, "batch_size": 16},
        "method": method,
        "settings": HET if method == "het-dropout" else {},
        "size": 40,
        "seed": 3,
    }
    return run_from({**raw, **changes})


def rows_without_time(folder: Path) -> list[Row]:
    rows, warnings = read_rows(folder / "metrics.jsonl")
    assert not warnings
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


class Killed(BaseException):
    """Ends a run the way a kill does: nothing gets the chance to tidy up."""


CURRICULUM = {"curriculum": {"tower_epochs": 2, "lr": 1e-3}, "sites": ["trunk.site2", "head.*"]}


@pytest.mark.parametrize(
    ("settings", "killed_after"),
    [
        (settings_of("no-xstar"), (1, 3)),
        (settings_of("gaussian-dropout"), (1, 3)),
        (settings_of("het-dropout"), (1, 3)),
        (settings_of("distillation"), (2, 4, 5)),  # in the teacher's stage, after it, after that
        (settings_of(settings=CURRICULUM), (4, 5, 6, 8)),
        (settings_of("oracle"), (1, 3)),
    ],
    ids=["no-xstar", "gaussian-dropout", "het-dropout", "distillation", "curriculum", "oracle"],
)
@pytest.mark.parametrize("seconds_between", [0, 1000])
def test_a_run_resumes_to_the_same_numbers(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    settings: RunSettings,
    killed_after: tuple[int, ...],
    seconds_between: float,
) -> None:
    """… after its last epoch where each is kept, and after its last stage where none is."""
    monkeypatch.setattr("lupi.train.checkpoint.SECONDS_BETWEEN", seconds_between)
    undisturbed = run(settings, tmp_path / "a")

    def kill_after(epoch: int) -> Any:
        def on_epoch(row: Row) -> None:
            if row["epoch"] == epoch:
                raise Killed

        return on_epoch

    for epoch in killed_after:
        with pytest.raises(Killed):
            run(settings, tmp_path / "b", kill_after(epoch))
    assert run(settings, tmp_path / "b") == undisturbed
    assert rows_without_time(tmp_path / "a") == rows_without_time(tmp_path / "b")
    kept = sorted(path.name for path in (tmp_path / "a/checkpoint").iterdir())
    assert ("method.safetensors" in kept) == bool(undisturbed["sites"])
    for name in kept:
        a, b = (load_weights(tmp_path / side / "checkpoint" / name) for side in "ab")
        assert all(torch.equal(a[key], b[key]) for key in a)


def test_a_run_on_a_table_resumes_to_the_same_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """… whose optimizer takes all its tensors at once."""
    monkeypatch.setattr("lupi.train.checkpoint.SECONDS_BETWEEN", 0)
    path = write_csv(tmp_path / "deliveries.csv", rows(90))
    task = {"name": "table", "path": path, "target": "hours", "privileged": ["rain", "traffic"]}
    settings = settings_of(task=task, network={}, settings={})

    def kill(row: Row) -> None:
        if row["epoch"] == 2:
            raise Killed

    with pytest.raises(Killed):
        run(settings, tmp_path / "b", kill)
    assert run(settings, tmp_path / "b") == run(settings, tmp_path / "a")


def test_rows_after_the_checkpoint_and_torn_rows_are_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lupi.train.checkpoint.SECONDS_BETWEEN", 0)
    settings = settings_of("no-xstar")
    undisturbed = run(settings, tmp_path / "a")

    def kill(row: Row) -> None:
        if row["epoch"] == 2:
            raise Killed

    with pytest.raises(Killed):
        run(settings, tmp_path / "b", kill)
    with (tmp_path / "b/metrics.jsonl").open("a") as file:
        file.write(json.dumps({"attempt": 0, "epoch": 3, "val": {"accuracy": 9.9}}) + "\n")
        file.write('{"attempt": 0, "epoch": 4, "va')
    assert run(settings, tmp_path / "b") == undisturbed
    assert rows_without_time(tmp_path / "a") == rows_without_time(tmp_path / "b")


def test_a_finished_run_is_only_read(tmp_path: Path) -> None:
    result = run(settings_of("no-xstar"), tmp_path)

    def never(row: Row) -> None:
        raise AssertionError("trained again")

    assert run(settings_of("no-xstar"), tmp_path, never) == result
    assert not (tmp_path / "checkpoint/last.safetensors").exists()


def test_the_shipped_checkpoint_is_a_plain_network(tmp_path: Path) -> None:
    from lupi.tasks.registry import build_task

    settings = settings_of()
    run(settings, tmp_path)
    weights = load_weights(tmp_path / "checkpoint/student.safetensors")
    plain = build_task(settings.task, settings.network).for_run(settings.size, 0).network()
    assert weights.keys() == plain.state_dict().keys()


def test_a_run_with_noise_records_its_variance_and_images(tmp_path: Path) -> None:
    result = run(settings_of(), tmp_path)
    site = result["sites"]["trunk.site2"]
    assert {"logvar_mean", "logvar_between", "variance_inside", "variance_outside"} <= site.keys()
    assert result["collapsed"] is False
    with np.load(tmp_path / "samples.npz", allow_pickle=False) as samples:
        assert samples["x"].shape == samples["mask"].shape == (8, 24, 24)
        assert samples["variance/trunk.site2"].shape == (8, 6, 6)


def test_constant_xstar_is_reported_as_collapsed(tmp_path: Path) -> None:
    settings = settings_of(
        settings={"sites": ["trunk.site2"], "beta": 0.1},
        control="constant",
        train={"epochs": 1},
    )
    assert run(settings, tmp_path)["collapsed"] is True


def test_a_trial_is_scored_on_validation_rows_alone(tmp_path: Path) -> None:
    ordinary, trial = settings_of(), settings_of(trial=True)
    assert ordinary.run_id != trial.run_id
    scored = run(ordinary, tmp_path / "a")
    result = run(trial, tmp_path / "b")
    assert result["metrics"] == {"val": scored["metrics"]["val"]}
    assert result["trivial"] != scored["trivial"]
    assert {path.name for path in (tmp_path / "b").iterdir()} == {
        ".lock",
        "environment.json",
        "metrics.jsonl",
        "result.json",
        "settings.json",
    }


def test_a_trial_that_diverged_has_the_trivial_score(tmp_path: Path) -> None:
    train = {"epochs": 3, "lr": 100.0, "optimizer": "sgd", "weight_decay": 1e30}
    result = run(settings_of("no-xstar", train=train, trial=True), tmp_path)
    assert result["status"] == "diverged"
    assert result["metrics"] == {"val": result["trivial"]}


def test_test_rows_of_a_trial_are_sealed() -> None:
    with pytest.raises(RuntimeError, match="must not look at test rows"):
        ForbiddenSplit().batches(4)
    with pytest.raises(RuntimeError, match="must not look at test rows"):
        len(ForbiddenSplit())


@pytest.mark.parametrize("n_restarts", [0, 2])
def test_divergence_is_recorded_and_restarted_as_asked(tmp_path: Path, n_restarts: int) -> None:
    train = {"epochs": 3, "lr": 100.0, "optimizer": "sgd", "n_restarts": n_restarts}
    train["weight_decay"] = 1e30
    result = run(settings_of("no-xstar", train=train), tmp_path)
    assert result["status"] == "diverged"
    assert result["restarts"] == n_restarts
    assert result["metrics"]["test"]["accuracy"] > 0  # a score all the same: never dropped
    assert {row["attempt"] for row in rows_without_time(tmp_path)} == set(range(n_restarts + 1))


def test_arms_share_initial_weights_subset_and_order(tmp_path: Path) -> None:
    """With noise that is practically none, het-dropout takes the very steps of no-xstar."""
    quiet = {"prior": 0.0, "noise": "fixed", "sites": ["trunk.*"]}
    network = {"width": 4, "dropout": 0.0}
    run(settings_of("no-xstar", network=network), tmp_path / "a")
    run(settings_of(settings=quiet, network=network), tmp_path / "b")
    run(settings_of("no-xstar", network=network, seed=4), tmp_path / "c")
    a, b, c = (rows_without_time(tmp_path / side)[0]["train"]["task"] for side in "abc")
    assert a == pytest.approx(b, rel=1e-3)
    assert a != pytest.approx(c, rel=1e-3)


def student_rows(folder: Path) -> list[Row]:
    rows = [row for row in rows_without_time(folder) if row["stage"] == "student"]
    return [{key: row[key] for key in ("stage_epoch", "lr", "val")} for row in rows]


def test_a_student_whose_teacher_is_not_believed_learns_as_if_it_had_none(tmp_path: Path) -> None:
    run(settings_of("no-xstar"), tmp_path / "a")
    run(settings_of("distillation", settings={"imitation": 0.0}), tmp_path / "b")
    run(settings_of("distillation"), tmp_path / "c")
    assert student_rows(tmp_path / "a") == student_rows(tmp_path / "b")
    assert student_rows(tmp_path / "a") != student_rows(tmp_path / "c")


def test_a_curriculum_begins_with_the_plain_student(tmp_path: Path) -> None:
    run(settings_of("no-xstar"), tmp_path / "a")
    run(settings_of(settings=CURRICULUM), tmp_path / "b")
    plain, rows = rows_without_time(tmp_path / "a"), rows_without_time(tmp_path / "b")
    assert [row["train"] for row in rows[:4]] == [row["train"] for row in plain]
    assert [row["stage"] for row in rows] == ["plain"] * 4 + ["tower"] * 2 + ["student"] * 4
    assert [row["epoch"] for row in rows] == list(range(1, 11))
    assert [row["lr"] for row in rows[6:]] == [1e-3] * 4


def test_an_oracle_is_scored_with_xstar(tmp_path: Path) -> None:
    """More epochs than elsewhere, so that it learns what the box gives away."""
    train = {"epochs": 15, "batch_size": 16, "lr": 0.01}
    seen = run(settings_of("oracle", train=train, size=150), tmp_path / "a")
    blind = run(settings_of("no-xstar", train=train, size=150), tmp_path / "b")
    assert seen["metrics"]["test"]["accuracy"] > blind["metrics"]["test"]["accuracy"] + 0.05
    assert not (tmp_path / "a/samples.npz").exists()  # it has no noise to show


def test_the_identity_is_the_settings(tmp_path: Path) -> None:
    first = settings_of()
    spelt_out = settings_of(settings={**HET, "penalty": "kl"})  # a default
    assert first.run_id == spelt_out.run_id
    assert first.run_id != settings_of(seed=4).run_id
    assert first.run_id != settings_of(control="shuffled").run_id


def test_a_setting_that_came_later_does_not_rename_the_runs_before_it() -> None:
    now = settings_of()
    before = now.resolved()
    assert before["train"].pop("accumulate") == 1
    assert run_identity(before) == now.run_id
    assert settings_of(train={**before["train"], "accumulate": 2}).run_id != now.run_id


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "het-dropuot"}, "did you mean `het-dropout`"),
        ({"settings": {"betta": 1}}, r"settings.betta: no such key; did you mean `beta`"),
        ({"settings": {"beta": -1}}, "settings.beta: got -1; input should be greater than"),
        (
            {"task": {"name": "digit"}},
            "no task is called `digit`; did you mean `digits`",
        ),
        ({"task": {}}, "task.name: is required"),
        ({"task": {"name": "digits", "noise": "loud"}}, "task.noise: got 'loud'"),
        ({"train": {"epoch": 4}}, r"train.epoch: no such key; did you mean `epochs`"),
        ({"train": {"optimizer": "adm"}}, "train.optimizer: got 'adm'; input should be 'adam'"),
        ({"network": {"name": "vgg"}}, "network.name: got 'vgg'"),
        ({"control": "shuffle"}, "control: got 'shuffle'"),
    ],
)
def test_wrong_settings_say_what_is_right(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(LupiError, match=message):
        settings_of(**changes)
