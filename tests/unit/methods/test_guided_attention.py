"""Attention taught by x*."""

import math

import pytest
import torch

from conftest import digits_task
from lupi.comparison.settings import ComparisonSettings
from lupi.core import Batch
from lupi.errors import LupiError
from lupi.methods.regions.guided_attention import _share_outside
from lupi.methods.registry import build_method
from lupi.networks.pooling import Attended, attention_of, teach
from lupi.noise.sites import reading
from made_reviews import text_task
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


def test_suppression_is_the_share_of_the_squares_outside_the_region() -> None:
    features = torch.tensor([[[[1.0, 2.0], [3.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]]])  # (1, 2, 2, 2)
    region = torch.tensor([[[[0.0, 1.0], [0.0, 0.0]]]])
    assert _share_outside(features, region).item() == pytest.approx(11 / 16)
    words = torch.tensor([[[1.0, 1.0], [3.0, 1.0]]])  # (1, 2, 2): of two words
    assert _share_outside(words, torch.tensor([[[1.0, 0.0]]])).item() == pytest.approx(10 / 12)
    assert _share_outside(torch.zeros_like(words), torch.zeros(1, 1, 2)).item() == 0


def test_features_learn_to_respond_to_the_region_alone() -> None:
    """So that a student can find an object it has few examples of; texts have no such loss."""
    shares = []
    for suppression in (0.0, 3.0):
        task = digits_task(pooling="both")
        torch.manual_seed(0)
        settings = {"suppression": suppression}
        method = build_method("guided-attention", settings, task.network(), task).train()
        optimizer = torch.optim.Adam(method.parameters(), lr=0.01)
        batch = next(iter(task.splits(32, 0).train.batches(32)))
        for _ in range(30):
            optimizer.zero_grad()
            losses_of(method, batch).total.backward()
            optimizer.step()
        assert batch.xstar is not None
        with reading({"places": method.net.get_submodule("trunk.pool.places")}) as found:
            method.eval().predict(batch.x)
        shares.append(_share_outside(found["places"], batch.xstar).mean().item())
    assert shares[1] < shares[0] - 0.1
    task = digits_task(pooling="both")
    usual = build_method("guided-attention", {}, task.network(), task)
    assert "outside" in losses_of(usual, batch).parts
    texts = text_task(40, network={"name": "cnn", "n_channels": 8, "pooling": "attention"})
    texts = texts.for_run(20, 0)
    of_words = build_method("guided-attention", {}, texts.network(), texts)
    assert (
        "outside" not in losses_of(of_words, next(iter(texts.splits(8, 0).train.batches(8)))).parts
    )
