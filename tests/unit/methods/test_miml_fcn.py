import pytest
import torch
from torch import nn

from conftest import VectorTask, digits_task
from lupi.core import Batch
from lupi.errors import LupiError
from lupi.methods.labels.miml_fcn import MimlFcn, MimlFcnSettings
from reduced import losses_of

SLACK = torch.nn.functional.softplus(torch.tensor(0.4)).item()


class PlainTask(VectorTask):
    """A network without dropout, so that losses can be computed again."""

    def network(self) -> nn.Module:
        return nn.Linear(6, 2)


def build(**settings: object) -> MimlFcn:
    """Build a method whose slack is the same for every x*."""
    task = PlainTask()
    method = MimlFcn(task.network(), task, MimlFcnSettings.parse(settings, "settings"))
    last = method.slack[-1]
    assert isinstance(last, nn.Linear)
    nn.init.zeros_(last.weight)
    nn.init.constant_(last.bias, 0.4)
    return method.train()


def a_batch(has: bool = True) -> Batch:
    batch = next(iter(VectorTask().splits(4, 0).train.batches(4)))
    return batch._replace(has_xstar=torch.tensor([True, True, has, has]))


def test_parts_by_hand() -> None:
    method, batch = build(weight=0.1), a_batch(has=False)
    each = method.task.example_loss(method.net(batch.x), batch.y)
    square = (each[:2] - SLACK).square().mean().item()  # of the rows that have x*
    parts = losses_of(method, batch).parts
    assert parts["task"].item() == pytest.approx(each.mean().item())
    assert parts["slack"].item() == pytest.approx(0.1 * square, rel=1e-5)
    assert parts["fit"].item() == pytest.approx(square, rel=1e-5)


def test_an_example_weighs_by_how_far_it_is_from_its_slack() -> None:
    method, batch = build(weight=0.3), a_batch()
    losses_of(method, batch).total.backward()
    weight = method.net.get_parameter("weight")
    each = method.task.example_loss(method.net(batch.x), batch.y)
    weighed = ((1 + 2 * 0.3 * (each.detach() - SLACK)) * each).mean()
    (expected,) = torch.autograd.grad(weighed, [weight])
    assert weight.grad is not None
    assert torch.allclose(weight.grad, expected)


def test_the_slack_network_learns_at_any_weight() -> None:
    task = VectorTask()
    method = MimlFcn(task.network(), task, MimlFcnSettings(weight=0.0)).train()
    losses_of(method, a_batch()).total.backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in method.slack.parameters())


def test_slack_is_never_negative() -> None:
    method = build()
    last = method.slack[-1]
    assert isinstance(last, nn.Linear)
    nn.init.constant_(last.bias, -5.0)
    batch = a_batch()
    each = nn.functional.cross_entropy(method.net(batch.x), batch.y, reduction="none")
    slack = each - method.loss(batch)["fit"].values.sqrt()
    assert torch.allclose(slack, nn.functional.softplus(torch.tensor(-5.0)), atol=1e-5)


def test_slack_of_a_region_sees_the_object_alone_and_does_not_move_the_convolutions() -> None:
    task = digits_task()
    method = MimlFcn(task.network(), task, MimlFcnSettings()).train()
    batch = next(iter(task.splits(6, 0).train.batches(6)))
    assert batch.xstar is not None
    elsewhere = batch._replace(x=torch.where(batch.xstar > 0, batch.x, 1 - batch.x))
    every = torch.ones(6, dtype=torch.bool)
    seen = method.xstar(batch, every)
    assert torch.equal(seen, method.xstar(elsewhere, every))
    assert not seen.requires_grad


def test_a_network_without_trunk_says_what_to_do() -> None:
    headless = nn.Sequential(nn.Flatten(), nn.Linear(576, 10))
    with pytest.raises(LupiError, match="call its convolutions `trunk`"):
        MimlFcn(headless, digits_task(), MimlFcnSettings())
