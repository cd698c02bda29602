"""Remedies for bad labels that do without x*: what x* must beat."""

import pytest
import torch
from torch.nn import functional as F

from conftest import VectorTask
from lupi.core import Batch
from lupi.methods.labels.confusion import Confusion, ConfusionSettings
from lupi.methods.labels.huber import Huber, HuberSettings
from lupi.methods.labels.label_smoothing import LabelSmoothing, LabelSmoothingSettings
from made_table import table_task
from reduced import losses_of

X, Y = torch.linspace(-1, 1, 24).view(4, 6), torch.tensor([0, 1, 1, 0])


def test_labels_are_explained_by_classes_and_the_matrix() -> None:
    task = VectorTask()
    method = Confusion(task.network(), task, ConfusionSettings(right=0.8, trace=0.5)).eval()
    assert torch.allclose(method.matrix, torch.tensor([[0.8, 0.2], [0.2, 0.8]]))
    losses = losses_of(method, Batch(X, Y))
    p = method.net(X).softmax(1) @ method.matrix
    assert losses.parts["task"].item() == pytest.approx(F.nll_loss(p.log(), Y).item(), rel=1e-5)
    assert losses.parts["trace"].item() == pytest.approx(0.5 * 0.8)


def test_the_matrix_finds_how_often_labels_are_wrong() -> None:
    """Class 0 is labelled 1 in 40 % of rows, class 1 is always right."""
    torch.manual_seed(0)
    task = VectorTask()
    method = Confusion(task.network(), task, ConfusionSettings())
    x = torch.randn(2000, 6)
    true = (x.sum(1) > 0).long()
    label = torch.where((true == 0) & (torch.rand(2000) < 0.4), 1, true)
    groups = [
        {**group, "lr": 0.01 * group.get("lr_factor", 1)} for group in method.parameter_groups()
    ]
    optimizer = torch.optim.Adam(groups)
    for _ in range(300):
        optimizer.zero_grad()
        losses_of(method, Batch(x, label)).total.backward()
        optimizer.step()
    assert method.matrix[0, 1].item() == pytest.approx(0.4, abs=0.08)
    assert method.matrix[1, 0].item() < 0.08
    right = method.eval().predict(x).argmax(1) == true
    assert right.float().mean() > 0.93


def test_smoothing_is_that_of_pytorch() -> None:
    task = VectorTask()
    method = LabelSmoothing(task.network(), task, LabelSmoothingSettings(smoothing=0.3)).eval()
    expected = F.cross_entropy(method.net(X), Y, label_smoothing=0.3)
    assert losses_of(method, Batch(X, Y)).total.item() == pytest.approx(expected.item(), rel=1e-5)


def test_a_large_error_pulls_no_more_than_delta() -> None:
    task = table_task("hours").for_run(12, 0)
    method = Huber(task.network(), task, HuberSettings(delta=0.5)).eval()
    output = torch.tensor([[0.0, 0.0], [0.0, 0.0]], requires_grad=True)
    method.net = torch.nn.Identity()
    loss = losses_of(method, Batch(output, torch.tensor([0.1, 100.0])))
    loss.total.backward()
    assert output.grad is not None
    assert (2 * output.grad[:, 0]).tolist() == pytest.approx([-0.1, -0.5])
    assert output.grad[1, 1] < 0 < output.grad[0, 1]  # the variance follows the errors
