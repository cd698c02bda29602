"""The public code of the paper, where it differs from the papers' texts."""

import math

import pytest
import torch
from torch import nn

from conftest import VectorTask
from lupi.core import Batch, Method
from lupi.errors import LupiError
from lupi.methods.registry import build_method
from lupi_paper.official import HallucinationOfficial, OfficialNoise
from reduced import losses_of


def build(name: str, **settings: object) -> Method:
    task = VectorTask()
    torch.manual_seed(0)
    return build_method(name, settings, task.network(), task).eval()


def a_batch() -> Batch:
    return next(iter(VectorTask().splits(8, 0).train.batches(8)))


@pytest.mark.parametrize(("relu", "smaller"), [(True, 1.0), (False, math.exp(-3))])
def test_the_log_variance_is_hstar_and_the_penalty_a_norm(relu: bool, smaller: float) -> None:
    layer = nn.Linear(1, 2)
    with torch.no_grad():
        layer.weight.zero_()
        layer.bias.copy_(torch.tensor([-3.0, 2.0]))
    drop = OfficialNoise(layer, beta=100.0, budget="none")
    drop.relu = relu
    penalty = drop(torch.ones(3, 2), torch.zeros(3, 1)).penalty
    # log-variance ReLU(-3) or -3, and 2; norm of sigma over the whole batch tensor
    expected = 100 * math.sqrt(3 * (smaller + math.e**2))
    assert penalty.tolist() == pytest.approx([expected] * 3, rel=1e-5)


def test_there_is_no_prior() -> None:
    with pytest.raises(LupiError, match="prior: it has no effect in het-dropout-official"):
        build("het-dropout-official", prior=1.0)


def test_the_divergence_is_divided_by_the_batch_size() -> None:
    paper, official = build("info-dropout"), build("info-dropout-official")
    official.load_state_dict(paper.state_dict())
    for method in (paper, official):
        method.train().n_rows = 800
    torch.manual_seed(0)
    mean = losses_of(paper, a_batch()).parts["divergence"].item()
    torch.manual_seed(0)
    assert losses_of(official, a_batch()).parts["divergence"].item() == pytest.approx(100 * mean)


def test_the_distance_of_a_hallucination_is_a_sum_over_rows_and_pulls_xstar() -> None:
    paper, official = build("hallucination"), build("hallucination-official")
    official.load_state_dict(paper.state_dict())
    mean, total = (
        losses_of(method, a_batch()).parts["hallucination"].item() for method in (paper, official)
    )
    assert mean > 0
    assert total == pytest.approx(8 * mean)
    assert isinstance(official, HallucinationOfficial)
    real = torch.randn(2, 3, requires_grad=True)
    official._distance(torch.randn(2, 3), real).sum().backward()
    assert real.grad is not None


def test_the_slack_knows_no_xstar() -> None:
    method, batch = build("miml-fcn-official", weight=0.01), a_batch()
    assert batch.xstar is not None
    output = method.net(batch.x)
    task = method.task.example_loss(output, batch.y).mean()
    expected = task + 0.01 * (task - output.amax(1).sum()) ** 2
    total = losses_of(method, batch).total
    assert total.item() == pytest.approx(expected.item(), rel=1e-6)
    assert torch.equal(total, losses_of(method, batch._replace(xstar=batch.xstar.roll(1, 0))).total)
    assert len(list(method.parameters())) == len(list(method.net.parameters()))
