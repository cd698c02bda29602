import pytest
import torch

from conftest import digits_task
from lupi.core import Batch
from lupi.methods.regions.views import Views, ViewsSettings
from made_words import WordTask
from reduced import losses_of


def test_a_view_is_the_text_of_the_rationale_alone() -> None:
    task = WordTask([0.0, 2.0, 3.0])
    method = Views(task.network(), task, ViewsSettings(weight=0.5))
    x = torch.tensor([[1, 2], [1, 2]])
    region = torch.tensor([[[0.0, 1.0]], [[1.0, 0.0]]])
    batch = Batch(x, torch.tensor([1, 1]), region, torch.tensor([True, False]))
    losses = losses_of(method, batch)

    def cross_entropy(logit: float) -> torch.Tensor:
        return torch.tensor(-logit).exp().log1p()

    assert losses.parts["task"].item() == pytest.approx(cross_entropy(5.0).item(), rel=1e-5)
    # one of two rows has a view
    assert losses.parts["view"].item() == pytest.approx(cross_entropy(3.0).item() / 4, rel=1e-5)


def test_where_the_region_is_everything_the_view_is_the_image() -> None:
    task = digits_task(dropout=0.0)
    method = Views(task.network(), task, ViewsSettings(weight=2.0)).train()
    x, region = torch.rand(6, 1, 24, 24), torch.ones(6, 1, 24, 24)
    batch = Batch(x, torch.arange(6), region, torch.ones(6, dtype=torch.bool))
    parts = losses_of(method, batch).parts
    assert parts["view"].item() == pytest.approx(2 * parts["task"].item(), rel=1e-5)
