"""The layout of activations is found from the layers before a site."""

import pytest
import torch
from torch import Tensor, nn

from lupi.noise.sites import CHANNELS_FIRST, MAP, SEQUENCE, VECTOR, Layout, find_sites, site_shapes


class Turned(nn.Module):
    """A convolution over time, turned to (B, T, C) before the dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.drop = nn.Conv1d(3, 6, 3, padding=1), nn.Dropout(0.5)

    def forward(self, x: Tensor) -> Tensor:
        turned: Tensor = self.drop(self.conv(x).transpose(1, 2))
        return turned


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 4, batch_first=True, bidirectional=True)
        self.drop = nn.Dropout(0.5)

    def forward(self, x: Tensor) -> Tensor:
        states: Tensor = self.drop(self.lstm(x)[0])
        return states


def conv(n_out: int, *layers: nn.Module) -> nn.Sequential:
    return nn.Sequential(nn.Conv1d(3, n_out, 1), *layers, nn.Dropout())


NETS: dict[str, tuple[nn.Module, tuple[int, ...], Layout, int]] = {
    "linear": (nn.Sequential(nn.Linear(3, 8), nn.Dropout()), (2, 3), VECTOR, 8),
    "conv1d": (
        conv(8, nn.ReLU()),
        (2, 3, 5),
        CHANNELS_FIRST,
        8,
    ),
    "conv1d-square": (
        conv(5),
        (2, 3, 5),
        CHANNELS_FIRST,
        5,
    ),
    "conv1d-turned": (Turned(), (2, 3, 5), SEQUENCE, 6),
    "lstm": (Recurrent(), (2, 5, 3), SEQUENCE, 8),
    "conv2d": (nn.Sequential(nn.Conv2d(3, 8, 1), nn.Dropout2d()), (2, 3, 5, 5), MAP, 8),
}


@pytest.mark.parametrize("name", NETS)
def test_layouts_are_found(name: str) -> None:
    net, shape, layout, n_channels = NETS[name]
    (found,) = site_shapes(net, find_sites(net, ["*"]), torch.randn(shape)).values()
    assert found.layout == layout
    assert found.n_channels == n_channels


def test_nothing_is_left_on_the_network() -> None:
    net = Recurrent().train()
    site_shapes(net, find_sites(net), torch.randn(2, 5, 3))
    assert net.training
    assert not any(module._forward_hooks for module in net.modules())
