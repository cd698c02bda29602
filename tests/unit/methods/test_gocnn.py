import math

import pytest
import torch
from torch import Tensor, nn

from conftest import VectorTask
from lupi.core import Batch
from lupi.errors import LupiError
from lupi.methods.regions.gocnn import GoCNN, GoCNNSettings
from lupi.noise.sites import Site
from reduced import losses_of


class MapTask(VectorTask):
    """The map of four channels is x itself; the output is its sum, and zero."""

    def __init__(self, n_channels: int = 4) -> None:
        super().__init__(xstar_kind="region", places="pixels")
        self.n_channels = n_channels

    def network(self) -> nn.Module:
        head = nn.Linear(self.n_channels * 4, 2, bias=False)
        with torch.no_grad():
            head.weight.copy_(torch.tensor([[1.0], [0.0]]).expand_as(head.weight))
        return nn.Sequential(Site(), nn.Flatten(), head)

    def example(self) -> Tensor:
        return torch.zeros(2, self.n_channels, 2, 2)


def build(**settings: object) -> GoCNN:
    task = MapTask()
    method = GoCNN(task.network(), task, GoCNNSettings.parse(settings, "settings"))
    for head in (method.foreground, method.background):  # both say: one half each
        nn.init.zeros_(head.weight)
        nn.init.zeros_(head.bias)
    return method.train()


LEFT = torch.tensor([[[[1.0, 0.0], [1.0, 0.0]]]])


def parts(method: GoCNN, x: Tensor, mask: Tensor = LEFT, has: bool = True) -> dict[str, float]:
    losses = losses_of(method, Batch(x, torch.tensor([0]), mask, torch.tensor([has])))
    return {name: part.item() for name, part in losses.parts.items()}


def test_every_term_by_hand() -> None:
    found = parts(build(), torch.full((1, 4, 2, 2), 0.1))
    # the head sees all 16 places, as in prediction
    assert found["task"] == pytest.approx(math.log(1 + math.exp(-1.6)), rel=1e-5)
    assert found["groups"] == pytest.approx(2 * math.log(2))
    # in the wrong place: 3 x 2 places and 1 x 2 places, of 16
    assert found["suppression"] == pytest.approx((6 + 2) / 16)


def test_the_share_does_not_depend_on_the_size_of_responses() -> None:
    x = torch.rand(1, 4, 2, 2)
    assert parts(build(), 100 * x)["suppression"] == pytest.approx(parts(build(), x)["suppression"])
    assert parts(build(), 0 * x)["suppression"] == 0


def test_every_term_of_the_paper_by_hand() -> None:
    found = parts(build(form="paper"), torch.ones(1, 4, 2, 2))
    # three foreground channels keep the left column, one background channel the right: sum 8
    assert found["task"] == pytest.approx(math.log(1 + math.exp(-8)), rel=1e-3)
    assert found["groups"] == pytest.approx(2 * math.log(2))
    # in the wrong place: 3 x 2 places and 1 x 2 places
    assert found["suppression"] == pytest.approx((6 + 2) / 320)


def test_responses_are_squared_and_weighed() -> None:
    x = torch.zeros(1, 4, 2, 2)
    x[0, 0, 0, 1] = 3.0  # a foreground channel outside the object
    x[0, 0, 0, 0] = 5.0  # inside it
    x[0, 3, 0, 0] = 2.0  # a background channel on the object
    assert parts(build(form="paper", suppression=0.5), x)["suppression"] == pytest.approx(
        0.5 * (9 + 4)
    )


def test_groups_are_divided_by_foreground_frac() -> None:
    x = torch.ones(1, 4, 2, 2)
    x[0, 2] = 10.0
    # channel 2 is background now: its two places on the object count
    found = parts(build(form="paper", foreground_frac=0.5), x)
    assert found["suppression"] == pytest.approx((2 + 2 + 200 + 2) / 320)


def test_a_row_without_xstar_is_neither_masked_nor_suppressed() -> None:
    found = parts(build(), torch.full((1, 4, 2, 2), 0.1), has=False)
    assert found["suppression"] == 0
    assert found["task"] == pytest.approx(math.log(1 + math.exp(-1.6)), rel=1e-5)


def test_a_place_with_some_of_both_belongs_to_both() -> None:
    mask = torch.zeros(1, 1, 4, 4)
    mask[..., 0] = 1  # half of the left column of the map
    foreground, background = build()._regions(mask, torch.tensor([True]))
    assert foreground[0, 0].tolist() == [[1, 0], [1, 0]]
    assert background[0, 0].tolist() == [[1, 1], [1, 1]]


def test_predictions_are_not_masked() -> None:
    method = build().eval()
    assert method.predict(torch.ones(1, 4, 2, 2))[0, 0].item() == 16


def test_one_channel_cannot_be_divided() -> None:
    task = MapTask(n_channels=1)
    with pytest.raises(LupiError, match="0 has only one channel"):
        GoCNN(task.network(), task, GoCNNSettings())
