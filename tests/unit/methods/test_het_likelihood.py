"""A label that x* calls imprecise pulls less."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from conftest import VectorTask
from lupi.core import Batch, Control, Outcome, Splits
from lupi.core.gaussian import gaussian_cross_entropy
from lupi.errors import LupiError
from lupi.loaders.tables.vectors import VectorSplit
from lupi.methods.by_row import folds
from lupi.methods.labels.het_likelihood import HetLikelihood, HetLikelihoodSettings
from lupi.methods.registry import build_method
from lupi.train.loop import fit
from lupi.train.settings import TrainSettings
from reduced import losses_of

TRUE_SLOPE = 1.5


class Numbers(Outcome):
    """A number, scored by its squared error."""

    __slots__ = ()

    def metrics(self, output: Tensor, y: Tensor, weights: Tensor | None = None) -> dict[str, float]:
        return {"accuracy": -(output[:, 0] - y).square().mean().item()}

    def is_uninformative(self, output: Tensor) -> bool:
        return False


class NumberTask(VectorTask):
    """y = x1 + noise, whose log-variance is 1.5 times the first number of x*."""

    def __init__(self) -> None:
        super().__init__(Numbers())

    def splits(
        self,
        size: int,
        seed: int,
        control: Control = "real",
        xstar_frac: float = 1.0,
        reveal: bool = False,
    ) -> Splits:
        generator = torch.Generator().manual_seed(seed)
        x, xstar = (torch.randn(size + 200, n, generator=generator) for n in (6, 2))
        noise = torch.randn(size + 200, generator=generator)
        y = x[:, 0] + (TRUE_SLOPE / 2 * xstar[:, 0]).exp() * noise
        train, val, test = (slice(size), slice(size, size + 100), slice(size + 100, None))
        has = torch.ones(size, dtype=torch.bool)
        return Splits(
            VectorSplit(Batch(x[train], y[train], xstar[train], has)),
            VectorSplit(Batch(x[val], y[val])),
            VectorSplit(Batch(x[test], x[test, 0])),
        )


def built(task: VectorTask, **settings: Any) -> HetLikelihood:
    return HetLikelihood(task.network(), task, HetLikelihoodSettings.parse(settings, "settings"))


def doubtful(method: HetLikelihood) -> None:
    """Let b be 3 where the first number of x* is 1, and -3 where it is -1."""
    with torch.no_grad():
        first, last = method.variance[0], method.variance[2]
        assert isinstance(first, nn.Linear)
        assert isinstance(last, nn.Linear)
        for weight in (first.weight, first.bias):
            weight.zero_()
        first.weight[0, 0], first.weight[1, 0] = 1.0, -1.0
        last.weight[0, 0], last.weight[0, 1] = 3.0, -3.0


def pulls(method: HetLikelihood, y: Tensor, output: Tensor) -> Tensor:
    """Return how long the gradient of each row's output is: a sure row's, and a doubtful one's."""
    xstar = torch.tensor([[-1.0, 0.0], [1.0, 0.0]])
    batch = Batch(torch.zeros(2, 6), y, xstar, torch.tensor([True, True]))
    output.requires_grad_()
    method._negative_log_likelihood(output, method._b(batch), batch).sum().backward()
    assert output.grad is not None
    return output.grad.norm(dim=1) if not method._is_number else output.grad[:, 0].abs()


def test_a_number_that_xstar_calls_imprecise_pulls_less() -> None:
    method = built(NumberTask())
    doubtful(method)
    sure, doubted = pulls(method, torch.ones(2), torch.zeros(2, 2))
    b = 4 * np.tanh(3 / 4)
    assert doubted.item() == pytest.approx(np.exp(-b), rel=1e-4)
    assert sure.item() == pytest.approx(np.exp(b), rel=1e-4)


def test_a_class_that_xstar_calls_unreliable_pulls_less() -> None:
    method = built(VectorTask(), n_samples=256)
    doubtful(method)
    torch.manual_seed(0)
    wrong = torch.tensor([[4.0, -4.0], [4.0, -4.0]])
    sure, doubted = pulls(method, torch.tensor([1, 1]), wrong)
    assert doubted < 0.5 * sure


def test_the_likelihood_of_classes_is_that_of_the_mean_probability() -> None:
    method = built(VectorTask(), n_samples=7)
    logits, y = torch.tensor([[1.0, -1.0]]), torch.tensor([1])
    batch = Batch(torch.zeros(1, 6), y, torch.zeros(1, 2), torch.tensor([True]))
    torch.manual_seed(5)
    loss = method._negative_log_likelihood(logits, torch.tensor([0.8]), batch)
    torch.manual_seed(5)
    noisy = logits + np.exp(0.4) * torch.randn(7, 2)
    assert loss.item() == pytest.approx(-noisy.softmax(1)[:, 1].mean().log().item(), rel=1e-5)


def test_no_student_of_a_fold_learns_from_its_own_rows() -> None:
    task = NumberTask()
    method = built(task, n_folds=3)
    batch = task.splits(30, 0).train.rows.select(slice(4, 5))  # type: ignore[attr-defined]
    with method.during(method.stages()[0]):
        losses_of(method, batch).total.backward()
    assert batch.row is not None
    left_out = folds(batch.row, 3).item()
    for k, net in enumerate(method.folds):
        gradients = [w.grad.abs().sum().item() for w in net.parameters() if w.grad is not None]
        assert (sum(gradients) == 0) == (k == left_out)


def test_two_steps_find_the_variance_and_the_student_is_better_for_it(tmp_path: Path) -> None:
    task = NumberTask()
    splits = task.splits(1000, 0)
    settings = TrainSettings(epochs=10, steps_per_epoch=40, batch_size=64, lr=0.003)
    error = {}
    for name in ("no-xstar", "het-likelihood"):

        def build(attempt: int, name: str = name) -> Any:
            torch.manual_seed(attempt)
            return build_method(name, {}, task.network(), task)

        fitted = fit(build, task, splits, settings, 0, tmp_path / name)
        test = next(splits.test.batches(100))
        error[name] = -task.outcome.metrics(fitted.method.eval().predict(test.x), test.y)[
            "accuracy"
        ]
    batch = next(splits.train.batches(1000))
    assert batch.xstar is not None
    found = fitted.method.logvars(batch)["label"][:, 0].numpy()
    # What is left of y is its own noise, and what a plain student can't know of the mean.
    left = (TRUE_SLOPE * batch.xstar[:, 0]).exp() + error["no-xstar"]
    truth = left.log().numpy()
    slope, _ = np.polyfit(truth, found, 1)
    assert slope == pytest.approx(1, abs=0.15)
    assert np.abs(found - truth).mean() < 0.2
    assert error["het-likelihood"] < 0.8 * error["no-xstar"]


def test_in_the_warm_up_the_student_learns_as_without_xstar() -> None:
    task = NumberTask()
    joint = built(task, steps="joint", warmup_epochs=2)
    batch = next(task.splits(30, 0).train.batches(30))

    def gradient() -> Tensor:
        joint.zero_grad()
        torch.manual_seed(0)
        losses_of(joint, batch).total.backward()
        return torch.cat([w.grad.flatten() for w in joint.net.parameters() if w.grad is not None])

    torch.manual_seed(0)
    gaussian_cross_entropy(joint.net(batch.x), batch.y).mean().backward()
    plain = torch.cat([w.grad.flatten() for w in joint.net.parameters() if w.grad is not None])
    for epoch, same in ((1, True), (2, True), (3, False)):
        joint.start_epoch(epoch)
        assert torch.allclose(gradient(), plain, atol=1e-6) == same


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"steps": "joint", "n_folds": 3}, "n_folds: has no effect with steps: joint"),
        ({"warmup_epochs": 3}, "warmup_epochs: has no effect with steps: two"),
    ],
)
def test_settings_without_effect_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(LupiError, match=message):
        HetLikelihoodSettings.parse(settings, "settings")


def test_settings_of_the_other_kind_of_target_are_refused() -> None:
    with pytest.raises(LupiError, match="n_samples is for classes, but the target is a number"):
        built(NumberTask(), n_samples=4)
