"""Optimizers: torch.optim's numbers to the last bit, whatever weights have gradients."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lupi.errors import LupiError
from lupi.train.optimizers import FUSED, Optimizer
from lupi.train.settings import TrainSettings

OPTIONS: dict[str, Any] = {"lr": 0.01, "weight_decay": 0.1}
TORCH: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "adam": lambda groups: torch.optim.Adam(groups, **OPTIONS, fused=True),
    "adamw": lambda groups: torch.optim.AdamW(groups, **OPTIONS, fused=True),
    "sgd": lambda groups: torch.optim.SGD(groups, **OPTIONS, momentum=0.9),
}


def make_net() -> nn.Sequential:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(16, 5), nn.Linear(5, 2))
    return net.to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]


def groups_of(net: nn.Sequential) -> list[dict[str, Any]]:
    return [
        {"params": list(net[0].parameters())},
        {"params": list(net[2:].parameters()), "weight_decay": 0.0},
    ]


def build(name: Any, net: nn.Sequential) -> Optimizer:
    return Optimizer(groups_of(net), TrainSettings(optimizer=name, **OPTIONS))


def set_gradients(net: nn.Sequential, x: Tensor, without_last: bool) -> None:
    net.zero_grad()
    hidden = net[:3](x)
    output = hidden if without_last else net[3](hidden)
    output.square().sum().backward()


@pytest.mark.parametrize("name", TORCH)
def test_weights_are_those_of_torch_and_of_a_resumed_training(name: str) -> None:
    ours, theirs = make_net(), make_net()
    optimizer, reference = build(name, ours), TORCH[name](groups_of(theirs))
    for step in range(6):
        for each in (optimizer, reference):
            each.param_groups[1]["lr"] = 0.02 / (step + 1)
        x = torch.randn(7, 3, 4, 4)
        for net in (ours, theirs):  # the last layer has no gradient in some steps
            set_gradients(net, x, without_last=step % 3 == 1)
        optimizer.step()
        reference.step()
        if step == 2:
            saved = optimizer.state_dict()
            optimizer = build(name, ours)
            optimizer.load_state_dict(saved)
    for own, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(own, other)


@pytest.mark.parametrize("name", ["adam", "adamw"])
def test_weights_are_those_of_torch_without_its_private_kernel(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = make_net(), make_net()
    reference = TORCH[name](groups_of(theirs))
    monkeypatch.delattr(torch, FUSED[name])
    optimizer = build(name, ours)
    for _ in range(4):
        x = torch.randn(7, 3, 4, 4)
        for net in (ours, theirs):
            set_gradients(net, x, without_last=False)
        optimizer.step()
        monkeypatch.undo()
        reference.step()
    for own, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.allclose(own, other, atol=1e-6)


def test_averages_come_back_in_the_layout_of_their_weights() -> None:
    net = make_net()
    optimizer = build("adam", net)
    set_gradients(net, torch.randn(7, 3, 4, 4), without_last=False)
    optimizer.step()
    saved = optimizer.state_dict()
    flat = [[average.contiguous() for average in averages] for averages in saved["averages"]]
    optimizer.load_state_dict({**saved, "averages": flat})
    restored = optimizer.state_dict()["averages"][0][0]
    assert restored.is_contiguous(memory_format=torch.channels_last)
    assert not restored.is_contiguous()


def test_an_option_without_effect_is_refused() -> None:
    groups = [{"params": [torch.zeros(2)], "betas": (0.5, 0.9)}]
    with pytest.raises(LupiError, match="a group has betas, which has no effect"):
        Optimizer(groups, TrainSettings())
