import math

import pytest
import torch
from torch import Tensor, nn

from conftest import VectorTask
from lupi.core import Batch
from lupi.errors import LupiError
from lupi.methods.noise.info_dropout import InfoDropout, InfoDropoutSettings
from reduced import losses_of

ALPHA = 0.001 + 0.3 / 2
"""Where the sigmoid is at its middle."""
UNITS = 16


def build(**settings: object) -> InfoDropout:
    task = VectorTask()
    method = InfoDropout(task.network(), task, InfoDropoutSettings.parse(settings, "settings"))
    for weight in method.alphas.parameters():
        nn.init.zeros_(weight)
    return method.train()


def a_batch(n: int = 5) -> Batch:
    return next(iter(VectorTask().splits(n, 0).train.batches(n)))


def divergence(method: InfoDropout) -> float:
    part: Tensor = losses_of(method, a_batch()).parts["divergence"]
    return part.item()


def test_divergence_of_half_the_noise() -> None:
    method = build()
    method.n_rows = 75_000
    expected = 3 / 75_000 * UNITS * math.log(0.301 / ALPHA)
    assert divergence(method) == pytest.approx(expected, rel=1e-5)


def test_the_most_noise_costs_nothing() -> None:
    method = build()
    for layer in method.alphas:
        assert isinstance(layer, nn.Linear)
        nn.init.constant_(layer.bias, 100.0)
    assert divergence(method) == pytest.approx(0, abs=1e-9)


def test_noise_is_log_normal() -> None:
    h = torch.full((20_000, UNITS), 2.0)
    z = build()._noise("2", [], h)
    logs = (z / h).log()
    assert logs.mean().item() == pytest.approx(0, abs=1e-3)
    assert logs.std().item() == pytest.approx(ALPHA, rel=0.01)


def test_noise_depends_on_x() -> None:
    method = build()
    for layer in method.alphas:
        assert isinstance(layer, nn.Linear)
        nn.init.eye_(layer.weight)
    for value in (-3.0, 3.0):
        h = torch.full((20_000, UNITS), value)
        alpha = 0.001 + 0.3 / (1 + math.exp(-value))
        spread = (method._noise("2", [], h) / h).log().std()
        assert spread.item() == pytest.approx(alpha, rel=0.02)


def test_bernoulli_dropout_rests_while_training_and_is_back_in_the_student() -> None:
    method, batch = build(alpha_max=1e-6), a_batch()
    loss = losses_of(method, batch).parts["task"]
    clean = method.task.example_loss(method.eval().predict(batch.x), batch.y).mean()
    assert loss.item() == pytest.approx(clean.item(), rel=0.01)
    dropout = method.student().get_submodule("2")
    assert isinstance(dropout, nn.Dropout)
    assert dropout.p == 0.2


def test_a_network_without_dropout_says_what_to_do() -> None:
    with pytest.raises(LupiError, match="has no dropout layer; name the `sites`"):
        InfoDropout(nn.Linear(6, 2), VectorTask(), InfoDropoutSettings())
