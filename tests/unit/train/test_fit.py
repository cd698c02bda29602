from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from conftest import VectorTask
from lupi.core import Method, Stage
from lupi.methods.registry import build_method, find_method
from lupi.train.checkpoint import save_state
from lupi.train.evaluate import describe_noise, is_collapsed
from lupi.train.loop import Fitted, Row, fit
from lupi.train.settings import TrainSettings


class DeadTask(VectorTask):
    """A network whose output can't depend on x."""

    def network(self) -> nn.Module:
        net = nn.Linear(6, 2)
        nn.init.zeros_(net.weight)
        net.weight.requires_grad_(False)
        return net


def fit_on(task: VectorTask, folder: Path, **changes: object) -> tuple[Fitted, list[Row]]:
    rows: list[Row] = []

    def build(attempt: int) -> Method:
        torch.manual_seed(attempt)
        return build_method("no-xstar", {}, task.network(), task)

    settings = TrainSettings.parse({"epochs": 5, "schedule": "constant", **changes}, "train")
    return fit(build, task, task.splits(200, 0), settings, 0, folder, rows.append), rows


def test_learns(tmp_path: Path) -> None:
    fitted, rows = fit_on(VectorTask(), tmp_path, epochs=30, lr=0.01)
    assert fitted.status == "finished"
    assert rows[-1]["val"]["accuracy"] > 0.9
    assert rows[-1]["train"]["loss"] < rows[0]["train"]["loss"]


def test_keeps_the_weights_of_best_validation(tmp_path: Path) -> None:
    task = VectorTask()
    fitted, rows = fit_on(task, tmp_path, epochs=12, lr=0.3)
    scores = [row["val"]["accuracy"] for row in rows]
    assert fitted.best_epoch == scores.index(max(scores)) + 1
    val = next(iter(task.splits(200, 0).val.batches(100)))
    output = fitted.method.eval().predict(val.x)
    assert task.outcome.metrics(output, val.y)["accuracy"] == max(scores)


def test_keeps_the_weights_of_the_last_epoch_if_asked(tmp_path: Path) -> None:
    task = VectorTask()
    fitted, rows = fit_on(task, tmp_path, epochs=12, lr=0.3, keep="last")
    scores = [row["val"]["accuracy"] for row in rows]
    assert max(scores) > scores[-1]  # or it would not differ from the best
    assert fitted.best_epoch == 12
    val = next(iter(task.splits(200, 0).val.batches(100)))
    output = fitted.method.eval().predict(val.x)
    assert task.outcome.metrics(output, val.y)["accuracy"] == scores[-1]


def test_outputs_that_ignore_x_count_as_diverged(tmp_path: Path) -> None:
    fitted, rows = fit_on(DeadTask(), tmp_path, uniform_after=3)
    assert fitted.status == "diverged"
    assert len(rows) == 3
    assert fitted.best_epoch == 1  # what was recorded before counts


def test_a_restart_begins_anew_from_other_weights(tmp_path: Path) -> None:
    fitted, rows = fit_on(DeadTask(), tmp_path, uniform_after=2, n_restarts=1)
    assert fitted.restarts == 1
    assert [(row["attempt"], row["epoch"]) for row in rows] == [(0, 1), (0, 2), (1, 1), (1, 2)]
    assert rows[0]["train"] != rows[2]["train"]


def test_a_run_that_lacks_its_result_only_comes_back_in_its_precision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lupi.train.checkpoint.SECONDS_BETWEEN", 0)
    fit_on(VectorTask(), tmp_path, precision="64-true")
    fitted, rows = fit_on(VectorTask(), tmp_path, precision="64-true")
    assert rows == []
    assert all(weight.dtype == torch.float64 for weight in fitted.method.parameters())


class TwoPhases(find_method("no-xstar")):  # type: ignore[misc]
    """A student that is scored in both of its stages."""

    def stages(self) -> tuple[Stage, ...]:
        return Stage("first"), Stage(train={"epochs": 2, "lr": 1e-9})


def fit_two_phases(folder: Path) -> tuple[Fitted, list[Row]]:
    task = VectorTask()
    rows: list[Row] = []

    def build(attempt: int) -> Method:
        torch.manual_seed(attempt)
        return TwoPhases(task.network(), task, TwoPhases.Settings())

    settings = TrainSettings(epochs=6, schedule="constant", lr=0.3)
    return fit(build, task, task.splits(200, 0), settings, 0, folder, rows.append), rows


def test_a_stage_goes_on_from_the_best_student_before_it(tmp_path: Path) -> None:
    fitted, rows = fit_two_phases(tmp_path)
    assert [row["lr"] for row in rows] == [0.3] * 6 + [1e-9] * 2
    first = [row["val"]["accuracy"] for row in rows[:6]]
    assert first[-1] < max(first)
    assert rows[6]["val"]["accuracy"] == max(first)
    assert fitted.best_epoch == 7
    assert fitted.epochs == 8


def test_a_kill_while_the_best_student_is_replaced_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lupi.train.checkpoint.SECONDS_BETWEEN", 0)
    undisturbed, _ = fit_two_phases(tmp_path / "a")

    def killed(path: Path, state: dict[str, Any]) -> None:
        if state["state"]["epoch"] == 7:  # its student is on disk, its checkpoint is not
            raise KeyboardInterrupt
        save_state(path, state)

    with monkeypatch.context() as patch:
        patch.setattr("lupi.train.checkpoint.save_state", killed)
        with pytest.raises(KeyboardInterrupt):
            fit_two_phases(tmp_path / "b")
    resumed, rows = fit_two_phases(tmp_path / "b")
    assert [row["epoch"] for row in rows] == [7, 8]
    for before, after in zip(
        undisturbed.method.net.parameters(), resumed.method.net.parameters(), strict=True
    ):
        assert torch.equal(before, after)


def test_a_stage_without_validation_is_not_scored_and_adapts_to_nothing(tmp_path: Path) -> None:
    task = VectorTask()
    rows: list[Row] = []

    def build(attempt: int) -> Method:
        return build_method("distillation", {"teacher_epochs": 8}, task.network(), task)

    settings = TrainSettings(epochs=3, schedule="adaptive", patience=1, n_decays=1)
    fitted = fit(build, task, task.splits(200, 0), settings, 0, tmp_path, rows.append)
    teacher = [row for row in rows if row["stage"] == "teacher"]
    assert len(teacher) == 8
    assert all(row["val"] is None and row["lr"] == settings.lr for row in teacher)
    assert fitted.best_epoch > 8


def test_a_teacher_that_diverges_ends_the_run(tmp_path: Path) -> None:
    task = VectorTask()
    rows: list[Row] = []

    def build(attempt: int) -> Method:
        return build_method("distillation", {}, task.network(), task)

    settings = TrainSettings(epochs=3, n_restarts=1, optimizer="sgd", lr=100.0, weight_decay=1e30)
    fitted = fit(build, task, task.splits(200, 0), settings, 0, tmp_path, rows.append)
    assert fitted.status == "diverged"
    assert fitted.restarts == 1
    assert fitted.best_epoch == 0
    assert {row["stage"] for row in rows} == {"teacher"}


def test_an_epoch_may_be_a_number_of_steps(tmp_path: Path) -> None:
    """Seven steps of 64 rows take more than two passes over 200 rows."""
    task = VectorTask()
    by_pass = fit_on(task, tmp_path / "a", epochs=1)[1]
    by_steps = fit_on(task, tmp_path / "b", epochs=1, steps_per_epoch=7)[1]
    assert by_steps[0]["train"]["loss"] < by_pass[0]["train"]["loss"]
    assert by_pass[0]["n_rows"] == 200
    assert by_steps[0]["n_rows"] == 200 + 3 * 64


def test_clipping_bounds_the_step(tmp_path: Path) -> None:
    task = VectorTask()
    options = {"epochs": 1, "optimizer": "sgd", "lr": 1.0, "momentum": 0.0, "weight_decay": 0.0}
    fitted, _ = fit_on(task, tmp_path, **options, clip=1e-6)
    torch.manual_seed(0)
    start = task.network()
    for before, after in zip(start.parameters(), fitted.method.net.parameters(), strict=True):
        assert (before - after).abs().max() < 1e-5


def test_noise_is_described_by_what_comes_from_xstar() -> None:
    task = VectorTask()
    method = build_method("het-dropout", {}, task.network(), task)
    batch = next(iter(task.splits(50, 0).train.batches(50)))
    at_prior = describe_noise(method, task, batch)
    assert is_collapsed(at_prior) is True  # h* starts at its prior, the same for every row
    for parameter in method.parameters():
        parameter.data.add_(torch.randn_like(parameter))
    described = describe_noise(method, task, batch)
    assert is_collapsed(described) is False
    logvar = method.logvars(batch)["2"]
    spread = logvar.std(0, correction=0).mean().item()
    assert described["2"]["logvar_between"] == pytest.approx(spread, rel=1e-5)
    assert is_collapsed({}) is None


class PlainTask(VectorTask):
    """A network that draws nothing."""

    def network(self) -> nn.Module:
        return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))


@pytest.mark.parametrize("accumulate", [2, 5, 100])
@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("no-xstar", {}),
        ("distillation", {"imitation": 0.5}),
        ("hallucination", {}),
        ("miml-fcn", {"weight": 0.1}),
        ("tram", {"n_hidden": 8}),
    ],
)
def test_accumulated_gradients_are_those_of_the_whole_batch(
    method: str, settings: dict[str, Any], accumulate: int, tmp_path: Path
) -> None:
    task = PlainTask()

    def losses_with(accumulate: int) -> list[dict[str, float]]:
        rows: list[Row] = []

        def build(attempt: int) -> Method:
            torch.manual_seed(attempt)
            return build_method(method, settings, task.network(), task)

        train = TrainSettings(
            epochs=2, batch_size=9, clip=1.0, precision="64-true", accumulate=accumulate
        )
        splits = task.splits(20, 0, xstar_frac=0.4)
        fit(build, task, splits, train, 0, tmp_path / str(accumulate), rows.append)
        return [row["train"] for row in rows]

    for whole, in_parts in zip(losses_with(1), losses_with(accumulate), strict=True):
        assert in_parts == pytest.approx(whole, rel=1e-6)
