import pytest
import torch
from torch import nn

from lupi.errors import LupiError
from lupi.methods.students import try_pass
from lupi.noise.sites import layer_inputs, layer_outputs, linear_layers


def test_reads_what_enters_and_leaves_and_goes_away() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    x = torch.randn(5, 3)
    with layer_inputs(net[2]) as before, layer_outputs(net[0]) as after:
        net(x)
    net(x)
    assert len(before) == len(after) == 1
    assert torch.equal(after[0], net[0](x))
    assert torch.equal(before[0], net[0](x).relu())
    assert not net[0]._forward_hooks
    assert not net[2]._forward_pre_hooks


def test_a_cut_stops_the_gradient_of_the_layer_but_not_of_what_was_read() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    with layer_inputs(net[1], cut=True) as seen:
        output = net(torch.randn(5, 3))
    output.sum().backward()
    assert net[0].weight.grad is None
    assert net[1].weight.grad is not None
    seen[0].sum().backward()
    assert net[0].weight.grad is not None


def test_networks_without_a_linear_layer_are_refused() -> None:
    with pytest.raises(LupiError, match="Sequential has none"):
        linear_layers(nn.Sequential(nn.ReLU()))


def test_trying_a_pass_changes_nothing() -> None:
    net = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(0.5)).train()
    before = {key: value.clone() for key, value in net.state_dict().items()}
    try_pass(net, torch.randn(4, 3))
    assert net.training
    assert all(torch.equal(value, before[key]) for key, value in net.state_dict().items())
