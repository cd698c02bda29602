"""`lupi.attach` with a guide: x* teaches the attention of anyone's network."""

import pytest
import torch
from torch import Tensor, nn

import lupi


class Looking(nn.Module):
    """A network written elsewhere, with a pooling of lupi's."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.pool = lupi.AttentionPooling(4)
        self.out = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.out(self.pool(self.conv(x).relu()))
        return output


def test_the_penalty_teaches_where_to_look() -> None:
    torch.manual_seed(0)
    net = lupi.attach(Looking(), xstar="region", guide=2.0)
    x, region = torch.rand(3, 1, 6, 6), torch.zeros(3, 1, 6, 6)
    region[:, :, 2, 3] = 1.0
    has = torch.tensor([True, True, False])
    output, penalty = net(x, region, has)
    assert output.shape == (3, 2)
    assert penalty[2] == 0
    uniform = 2.0 * torch.tensor(37.0).log()  # 36 places and nowhere, at first all alike
    assert penalty[:2].tolist() == pytest.approx([uniform.item()] * 2, rel=1e-5)
    penalty.sum().backward()
    grad = dict(net.net.named_parameters())["pool.scores.weight"].grad
    assert grad is not None
    assert grad.abs().sum() > 0


def test_predictions_take_no_xstar_and_the_student_is_plain() -> None:
    net = lupi.attach(Looking(), xstar="region", guide=1.0)
    x = torch.rand(2, 1, 6, 6)
    assert torch.equal(net.predict(x), net.student().eval()(x))
    assert list(net.student().state_dict()) == list(Looking().state_dict())


def test_a_guide_and_noise_together() -> None:
    net = lupi.attach(Looking(), xstar="region", guide=1.0, sites=["pool.places"])
    region = torch.zeros(4, 1, 6, 6)
    region[:, :, :2] = 1.0
    first, second = (net(torch.rand(4, 1, 6, 6), region).output for _ in range(2))
    assert not torch.equal(first, second)


def test_a_network_without_attention_can_not_be_guided() -> None:
    plain = nn.Sequential(nn.Flatten(), nn.Dropout(0.1), nn.Linear(4, 2))
    with pytest.raises(lupi.LupiError, match="where to look"):
        lupi.attach(plain, xstar="region", guide=1.0)
    with pytest.raises(lupi.LupiError, match="marks a region"):
        lupi.attach(Looking(), xstar=3, guide=1.0)
