import pytest
import torch
from torch import Tensor, nn

from conftest import VectorTask, digits_task
from lupi.core import Batch, Task
from lupi.methods.regions.multitask_box import MultitaskBox, MultitaskBoxSettings
from reduced import losses_of


def build(task: Task, **settings: object) -> MultitaskBox:
    method = MultitaskBox(task.network(), task, MultitaskBoxSettings.parse(settings, "settings"))
    for weight in method.head.parameters():  # predicts zeros
        nn.init.zeros_(weight)
    return method.train()


def left_half(n: int = 2) -> Tensor:
    mask = torch.zeros(n, 1, 24, 24)
    mask[..., :12] = 1
    return mask


def test_loss_of_a_box() -> None:
    mask, has = left_half(), torch.tensor([True, False])
    batch = Batch(torch.rand(2, 1, 24, 24), torch.tensor([0, 1]), mask, has)
    # centre (1/4, 1/2), size (1/2, 1): smooth L1 of zeros is half the mean of the squares
    expected = 0.1 * (0.25**2 + 0.5**2 + 0.5**2 + 1) / 4 / 2
    parts = losses_of(build(digits_task()), batch).parts
    assert parts["box"].item() == pytest.approx(expected, rel=1e-6)


def test_loss_of_a_vector() -> None:
    xstar = torch.tensor([[0.5, 3.0], [9.0, 9.0]])
    batch = Batch(torch.rand(2, 6), torch.tensor([0, 1]), xstar, torch.tensor([True, False]))
    # smooth L1: half the square below 1, distance less a half above
    expected = 0.3 * (0.5**2 / 2 + 2.5) / 2
    parts = losses_of(build(VectorTask(), weight=0.3), batch).parts
    assert parts["box"].item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("task", "site", "n_features"),
    [
        (digits_task(), None, 16 * 3 * 3),
        (digits_task(), "trunk.site1", 4 * 12 * 12),
        (VectorTask(), None, 16),
    ],
)
def test_the_head_reads_the_last_map_or_the_last_site(
    task: Task, site: str | None, n_features: int
) -> None:
    first = next(m for m in build(task, site=site).head if isinstance(m, nn.Linear))
    assert first.in_features == n_features


def test_the_second_task_teaches_the_convolutions() -> None:
    task = digits_task()
    batch = Batch(torch.rand(4, 1, 24, 24), torch.arange(4), left_half(4), torch.tensor([True] * 4))
    gradients = []
    for weight in (0.0, 1.0):
        torch.manual_seed(0)
        method = MultitaskBox(task.network(), task, MultitaskBoxSettings(weight=weight)).train()
        torch.manual_seed(0)
        losses_of(method, batch).total.backward()
        net = method.net
        gradients.append(
            [net.get_parameter(n).grad for n in ("trunk.block1.0.weight", "head.fc1.weight")]
        )
    (trunk, head), (trunk_and_box, head_and_box) = gradients
    assert trunk is not None
    assert head is not None
    assert trunk_and_box is not None
    assert head_and_box is not None
    assert not torch.allclose(trunk, trunk_and_box)
    assert torch.equal(head, head_and_box)
