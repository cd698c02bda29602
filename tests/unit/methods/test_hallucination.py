import pytest
import torch

from conftest import VectorTask, digits_task
from lupi.core import Batch, Task
from lupi.methods.teachers.hallucination import Hallucination, HallucinationSettings
from reduced import losses_of


def build(task: Task | VectorTask, **settings: object) -> Hallucination:
    parsed = HallucinationSettings.parse(settings, "settings")
    return Hallucination(task.network(), task, parsed).train()


def a_batch(task: Task | VectorTask) -> Batch:
    return next(iter(task.splits(8, 0).train.batches(8)))


def test_distance_by_hand() -> None:
    """Sigmoids after the ReLU are .5 and .75 of the first unit, .5 and .5 of the second."""
    imagined = torch.tensor([[0.0, -3.0], [0.0, -3.0]])
    real = torch.tensor([[3.0, 1.0], [3.0, 1.0]]).log()
    distance = build(VectorTask())._distance(imagined, real)
    assert distance.tolist() == pytest.approx([0.0625, 0.0625])


def test_xstar_is_not_pulled() -> None:
    real = torch.randn(2, 3, requires_grad=True)
    imagined = torch.randn(2, 3, requires_grad=True)
    build(VectorTask())._distance(imagined, real).sum().backward()
    assert imagined.grad is not None
    assert real.grad is None


def test_the_prediction_is_the_mean_of_two_heads_on_one_trunk() -> None:
    task = digits_task()
    method, x = build(task).eval(), a_batch(task).x
    own = method.net.net(x)
    imagined = method.net.hallucination(method.net.net.get_submodule("trunk")(x))
    assert torch.allclose(method.predict(x), (own + imagined) / 2)


def test_the_hallucination_comes_nearer_to_xstar() -> None:
    task = digits_task(dropout=0.0)
    method, batch = build(task), a_batch(task)
    first = losses_of(method, batch).parts["hallucination"]
    optimizer = torch.optim.Adam(method.parameters(), 1e-2)
    for _ in range(20):
        optimizer.zero_grad()
        losses = losses_of(method, batch)
        losses.total.backward()
        optimizer.step()
    assert losses.parts["hallucination"] < first / 4
