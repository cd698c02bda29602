"""Batches in parts, in one process; several are in tests/contract."""

from itertools import chain

import pytest
import torch

from conftest import VectorTask
from lupi.core import Batch, Losses, RowLoss
from lupi.methods.registry import build_method
from lupi.train.batch_loss import Part, TrainingLoss, cut, reduce

N = 11
HAS = torch.tensor([1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0], dtype=torch.bool)


def make_batch() -> Batch:
    return Batch(torch.zeros(N, 1), torch.arange(N), torch.zeros(N, 1), HAS, n_targets=40)


@pytest.mark.parametrize("n_processes", [1, 2, 3, 20])
@pytest.mark.parametrize("n_passes", [1, 2, 4, 11, 30])
def test_parts_are_all_rows_once(n_passes: int, n_processes: int) -> None:
    batch = make_batch()
    by_process = [cut(batch, n_passes, n_processes, rank) for rank in range(n_processes)]
    parts = [*chain(*zip(*by_process, strict=True))]
    rows = [row for part in parts if part.share for row in part.batch.y.tolist()]
    assert rows == [*range(N)]
    assert sum(part.share for part in parts) == pytest.approx(1)
    assert sum(part.xstar_share for part in parts if part.share) == pytest.approx(1)
    assert all(len(part.batch.y) for part in parts)


def test_losses_of_parts_add_up() -> None:
    values, of_xstar = torch.randn(N, 3), torch.randn(N)
    batch = make_batch()

    def losses(part: Part) -> Losses:
        rows = part.batch.y
        has = HAS[rows]
        return {
            "all": RowLoss(values[rows], 2.0),
            "mean": RowLoss(values[rows].mean()),
            "xstar": RowLoss(of_xstar[rows][has], only_xstar=True),
        }

    expected = {
        "all": 2 * values.mean(),
        "mean": values.mean(),
        "xstar": of_xstar[HAS].mean(),
    }
    whole = reduce(losses(Part(batch)), Part(batch)).parts
    parts = [reduce(losses(part), part).parts for part in cut(batch, 3)]
    for name, value in expected.items():
        assert whole[name].item() == pytest.approx(value.item(), abs=1e-6)
        assert sum(part[name].item() for part in parts) == pytest.approx(value.item(), abs=1e-5)


def test_the_mean_over_targets_does_not_depend_on_the_parts() -> None:
    task = VectorTask()
    method = build_method("no-xstar", {}, task.network(), task)
    batch = next(iter(task.splits(20, 0).train.batches(N)))._replace(n_targets=40)
    output = method.eval().predict(batch.x)

    def total(parts: list[Part]) -> float:
        found = 0.0
        for part in parts:
            loss = method.task_loss(method.predict(part.batch.x), part.batch)
            found += reduce({"task": loss}, part).total.item()
        return found

    expected = (task.example_loss(output, batch.y).sum() / 40).item()
    assert total(cut(batch)) == pytest.approx(expected, rel=1e-5)
    assert total(cut(batch, 3)) == pytest.approx(expected, rel=1e-5)


def test_a_loss_that_concerns_no_row_is_zero_and_has_gradients() -> None:
    task = VectorTask()
    method = build_method("distillation", {}, task.network(), task)
    batch = next(iter(task.splits(20, 0, "real", 0.0).train.batches(N)))
    with method.during(method.stages()[0]):
        total = TrainingLoss(method)(Part(batch)).total
        total.backward()
    assert total.item() == 0
    assert all(not w.grad.any() for w in method.parameters() if w.grad is not None)
