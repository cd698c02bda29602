import pytest
import torch
from torch import nn

from conftest import VectorTask, digits_task
from lupi.core import Batch
from lupi.methods.teachers.distillation import (
    Distillation,
    DistillationSettings,
    SelfDistillation,
    SelfDistillationSettings,
)
from reduced import losses_of


def build(task: VectorTask, **settings: object) -> Distillation:
    return Distillation(
        task.network(), task, DistillationSettings.parse(settings, "settings")
    ).train()


def a_batch(task: VectorTask, xstar_frac: float = 1.0) -> Batch:
    return next(iter(task.splits(8, 0, "real", xstar_frac).train.batches(8)))


class WithoutDropout(VectorTask):
    def network(self) -> nn.Module:
        return nn.Linear(6, 2)


def test_the_loss_by_hand() -> None:
    task = WithoutDropout()
    method, batch = build(task, imitation=0.25, temperature=2.0), a_batch(task)
    assert batch.xstar is not None
    soft = (method.teacher(batch.xstar) / 2).softmax(1)
    output = method.net(batch.x)
    hard = nn.functional.cross_entropy(output, batch.y)
    imitation = -(soft * output.log_softmax(1)).sum(1).mean()
    losses = losses_of(method, batch)
    assert losses.total.item() == pytest.approx((0.75 * hard + 0.25 * imitation).item())
    assert losses.parts["task"].item() == pytest.approx(0.75 * hard.item())


def test_rows_without_xstar_have_their_label_alone() -> None:
    task = WithoutDropout()
    method, batch = build(task, imitation=1.0), a_batch(task, xstar_frac=0.5)
    has = batch.has_xstar
    assert has is not None
    hard = nn.functional.cross_entropy(method.net(batch.x), batch.y, reduction="none")
    of_labels = losses_of(method, batch).parts["task"]
    assert of_labels.item() == pytest.approx(hard[~has].sum().item() / 8)


def test_the_teacher_of_a_region_sees_the_object_alone() -> None:
    task = digits_task()
    method = Distillation(task.network(), task, DistillationSettings()).train()
    batch = next(iter(task.splits(8, 0).train.batches(8)))
    assert batch.xstar is not None
    elsewhere = batch._replace(x=torch.where(batch.xstar > 0, batch.x, 1 - batch.x))
    with method.during(method.stages()[0]):
        torch.manual_seed(0)
        seen = losses_of(method, batch).total
        torch.manual_seed(0)
        assert torch.equal(seen, losses_of(method, elsewhere).total)


def test_the_teacher_rests_while_the_student_learns() -> None:
    """No dropout in what it says, and no new batch-norm statistics."""
    task = digits_task()
    method = SelfDistillation(task.network(), task, SelfDistillationSettings()).train()
    before = {key: value.clone() for key, value in method.teacher.state_dict().items()}
    method.loss(next(iter(task.splits(8, 0).train.batches(8))))
    assert not method.teacher.training
    assert all(torch.equal(v, before[key]) for key, v in method.teacher.state_dict().items())


def test_the_teachers_stage_has_its_own_training() -> None:
    task = VectorTask()
    teacher, student = build(task, teacher_epochs=3, teacher_lr=0.5).stages()
    assert dict(teacher.train) == {"epochs": 3, "lr": 0.5}
    assert not teacher.validates
    assert not student.train
    assert not build(task).stages()[0].train
