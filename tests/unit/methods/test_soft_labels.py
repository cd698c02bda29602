import math

import pytest
import torch

from lupi.methods.teachers.distillation import imitation_loss

# softmax(log 9, 0) = (.9, .1); at temperature 2 the teacher says (.75, .25)
TEACHER = torch.tensor([[math.log(9), 0.0]])
STUDENT = torch.tensor([[math.log(4), 0.0]])  # (.8, .2)


def cross_entropy(soft: float, student: float) -> float:
    return -(soft * math.log(student) + (1 - soft) * math.log(1 - student))


def test_only_the_teacher_has_a_temperature() -> None:
    loss = imitation_loss(STUDENT, TEACHER, 2.0)
    assert loss.tolist() == pytest.approx([cross_entropy(0.75, 0.8)])


def test_a_student_that_agrees_has_the_least_loss() -> None:
    teacher = torch.randn(5, 4)
    other = teacher + torch.randn(5, 4)
    assert (imitation_loss(teacher, teacher, 1.0) < imitation_loss(other, teacher, 1.0)).all()
