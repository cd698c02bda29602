import pytest
import torch
from torch import nn

from conftest import VectorTask, digits_task
from lupi.core import Batch
from lupi.errors import LupiError
from lupi.methods.labels.tram import JointHead, Tram, TramSettings
from reduced import losses_of


class WithoutDropout(VectorTask):
    def network(self) -> nn.Module:
        return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))


def a_batch(task: VectorTask) -> Batch:
    return next(iter(task.splits(8, 0).train.batches(8)))


def test_features_learn_through_the_head_that_sees_xstar_alone() -> None:
    task = WithoutDropout()
    net = task.network()
    method = Tram(net, task, TramSettings())
    batch = a_batch(task)
    losses_of(method, batch).total.backward()
    of_both = net.get_submodule("0").weight.grad.clone()  # type: ignore[union-attr, operator]
    own = net.get_submodule("2").weight.grad.clone()  # type: ignore[union-attr, operator]
    net.zero_grad()
    assert batch.xstar is not None
    assert batch.has_xstar is not None
    features = net.get_submodule("1")(net.get_submodule("0")(batch.x))
    joint = method.joint(features, batch.xstar, batch.has_xstar)
    nn.functional.cross_entropy(joint, batch.y).backward()
    assert torch.allclose(net.get_submodule("0").weight.grad, of_both)  # type: ignore[arg-type]
    net.zero_grad()
    nn.functional.cross_entropy(net(batch.x), batch.y).backward()
    assert torch.allclose(net.get_submodule("2").weight.grad, own)  # type: ignore[arg-type]


def test_a_row_without_xstar_has_no_embedding() -> None:
    head = JointHead(3, 2, 5, 4)
    features, none = torch.randn(2, 3), torch.zeros(2, dtype=torch.bool)
    assert torch.equal(
        head(features, torch.zeros(2, 2), none), head(features, torch.ones(2, 2), none)
    )


def test_blacked_out_images_do_not_touch_running_statistics() -> None:
    task = digits_task()
    method = Tram(task.network(), task, TramSettings()).train()
    before = {name: value.clone() for name, value in method.net.named_buffers()}
    method.head.features(next(iter(task.splits(8, 0).train.batches(8))).x)
    assert all(torch.equal(before[name], value) for name, value in method.net.named_buffers())


def test_parts_that_cannot_be_the_head_are_refused() -> None:
    task = digits_task()
    with pytest.raises(LupiError, match="no part 'tail'; it has trunk, head"):
        Tram(task.network(), task, TramSettings(head="tail"))
    with pytest.raises(LupiError, match="name a part after the flattening"):
        Tram(task.network(), task, TramSettings(head="trunk.block2"))
