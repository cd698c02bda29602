"""Attention taught by x*."""

import math

import pytest
import torch

from conftest import digits_task
from lupi.comparison.settings import ComparisonSettings
from lupi.core import Batch
from lupi.errors import LupiError
from lupi.methods.registry import build_method
from lupi.networks.pooling import Attended, attention_of, teach
from reduced import losses_of

SCORES = torch.tensor([[0.0, 0.0, math.log(2), 0.0, math.log(3)]])  # 4 places, then nowhere


def test_the_loss_is_the_cross_entropy_of_region_and_attention() -> None:
    region = torch.tensor([[[[0.0, 0.0], [1.0, 1.0]]]])
    expected = -(math.log(2 / 8) + math.log(1 / 8)) / 2
    assert teach(Attended(SCORES, (2, 2)), region).item() == pytest.approx(expected)


def test_an_empty_region_teaches_to_look_nowhere() -> None:
    loss = teach(Attended(SCORES, (2, 2)), torch.zeros(1, 1, 2, 2))
    assert loss.item() == pytest.approx(-math.log(3 / 8))


def test_a_cell_with_any_pixel_of_the_region_belongs_to_it() -> None:
    region = torch.zeros(1, 1, 8, 8)
    region[0, 0, 5, 1] = 1.0  # in the cell (1, 0)
    assert teach(Attended(SCORES, (2, 2)), region).item() == pytest.approx(-math.log(2 / 8))


def test_rows_without_xstar_are_not_taught() -> None:
    task = digits_task(pooling="attention")
    method = build_method("guided-attention", {}, task.network(), task)
    batch = next(iter(task.splits(8, 0).train.batches(8)))
    nobody = batch._replace(has_xstar=torch.zeros(8, dtype=torch.bool))
    assert losses_of(method.eval(), batch).parts["attention"] > 0
    assert losses_of(method.eval(), nobody).parts["attention"] == 0


def test_a_student_learns_to_look_at_the_region() -> None:
    task = digits_task(pooling="attention")
    method = build_method("guided-attention", {"weight": 3.0}, task.network(), task).train()
    optimizer = torch.optim.Adam(method.parameters(), lr=0.01)
    batch = next(iter(task.splits(32, 0).train.batches(32)))
    before = _share_inside(method.net, batch)
    for _ in range(30):
        optimizer.zero_grad()
        losses_of(method, batch).total.backward()
        optimizer.step()
    assert _share_inside(method.net, batch) > before + 0.2


def _share_inside(net: torch.nn.Module, batch: Batch) -> float:
    assert batch.xstar is not None
    found = attention_of(net, batch.x)
    assert found is not None
    inside = torch.nn.functional.adaptive_max_pool2d(batch.xstar, found.shape[1:])[:, 0]
    return ((found * inside).sum() / found.sum()).item()


def test_it_refuses_a_student_that_averages() -> None:
    task = digits_task()
    with pytest.raises(LupiError, match="pooling: attention"):
        build_method("guided-attention", {}, task.network(), task)


def test_a_comparison_adds_its_controls() -> None:
    raw = {"name": "a", "task": {"name": "digits"}, "sizes": [20], "seeds": 1}
    network = {"pooling": "attention"}
    arms = {"guided": {"method": "guided-attention"}, "own": {"method": "guided-attention"}}
    arms["own"]["controls"] = ["shuffled"]  # type: ignore[assignment]
    settings = ComparisonSettings.parse({**raw, "network": network, "arms": arms}, "")
    assert [arm.name for arm in settings.named_arms()] == [
        "guided",
        "guided/shuffled",
        "guided/random",
        "guided/constant",
        "own",
        "own/shuffled",
    ]


def test_noise_leaves_the_region_alone() -> None:
    task = digits_task(pooling="attention")
    quiet, noisy = (
        build_method("guided-attention", {"variance": v}, task.network(), task).train()
        for v in (0.0, 4.0)
    )
    noisy.net.load_state_dict(quiet.net.state_dict())
    batch = next(iter(task.splits(8, 0).train.batches(8)))
    assert batch.xstar is not None
    for region, same in ((torch.ones_like(batch.xstar), True), (batch.xstar, False)):
        losses = []
        for method in (quiet, noisy):
            for module in method.modules():
                if isinstance(module, torch.nn.Dropout):
                    module.p = 0.0
            losses.append(losses_of(method, batch._replace(xstar=region)).parts["task"].item())
        assert (losses[0] == pytest.approx(losses[1], rel=1e-4)) == same
