import pytest
import torch
from torch import nn

from conftest import VectorTask
from lupi.core import Batch
from lupi.methods.by_row import RandomVectors
from lupi.methods.labels.pi_dual import PiDual, PiDualSettings
from lupi.methods.labels.tram import Tram, TramSettings
from reduced import losses_of


def gated(open_to_noise: float) -> tuple[PiDual, Batch]:
    """A method whose gate is the same for every row, and a batch."""
    task = VectorTask()
    method = PiDual(task.network(), task, PiDualSettings()).eval()
    last = method.gate[-1]
    assert isinstance(last, nn.Linear)
    with torch.no_grad():
        last.weight.zero_()
        last.bias.fill_(open_to_noise)
    return method, next(iter(task.splits(8, 0).train.batches(8)))


def test_where_xstar_says_noise_the_student_learns_nothing() -> None:
    method, batch = gated(100.0)
    losses_of(method, batch).total.backward()
    assert all(w.grad is not None and not w.grad.any() for w in method.net.parameters())
    assert any(w.grad is not None and w.grad.any() for w in method.noise.parameters())


def test_where_xstar_says_clean_the_student_learns_as_usual() -> None:
    method, batch = gated(-100.0)
    loss = losses_of(method, batch).total
    expected = nn.functional.cross_entropy(method.net(batch.x), batch.y)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)


def test_a_row_without_xstar_is_clean() -> None:
    method, batch = gated(100.0)
    batch = batch._replace(has_xstar=torch.zeros(8, dtype=torch.bool))
    expected = nn.functional.cross_entropy(method.net(batch.x), batch.y)
    assert losses_of(method, batch).total.item() == pytest.approx(expected.item(), rel=1e-5)


def test_a_control_keeps_the_random_vectors_and_replaces_the_rest() -> None:
    task, random = VectorTask(), RandomVectors(5)
    real, shuffled = (
        next(iter(task.splits(8, 0, control).train.batches(8))) for control in ("real", "shuffled")
    )
    seen, seen_shuffled = (
        random.append_to(batch.privileged()[0], batch) for batch in (real, shuffled)
    )
    assert torch.equal(seen[:, 2:], seen_shuffled[:, 2:])
    assert not torch.equal(seen[:, :2], seen_shuffled[:, :2])
    assert len(seen[:, 2:].unique(dim=0)) == 8


def test_tram_sees_the_random_vectors() -> None:
    task = VectorTask()
    method = Tram(task.network(), task, TramSettings(random_dim=5)).eval()
    batch = next(iter(task.splits(8, 0).train.batches(8)))
    assert batch.row is not None
    other = batch._replace(row=batch.row + 8)
    own, of_other = (losses_of(method, rows).parts for rows in (batch, other))
    assert torch.equal(own["task"], of_other["task"])
    assert not torch.equal(own["xstar"], of_other["xstar"])
