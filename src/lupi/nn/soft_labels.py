"""Soft labels: a teacher's class probabilities at a temperature, and the loss of imitating them.

    s = softmax(teacher / T),   loss = cross-entropy(s, softmax(student))

Hinton, Vinyals, Dean: "Distilling the Knowledge in a Neural Network", 2015; Lopez-Paz et al.:
"Unifying distillation and privileged information", ICLR 2016.
"""

from typing import Literal

from torch import Tensor, nn

from lupi.errors import LupiError
from lupi.nn.taps import try_pass

SoftReading = Literal["paper", "official", "hinton"]
"""paper: the student at temperature 1; official: the same times T^2, as in the authors' code;
hinton: the student at temperature T, times T^2."""


def imitation_loss(
    student: Tensor, teacher: Tensor, temperature: float, reading: SoftReading = "paper"
) -> Tensor:
    """Return the cross-entropy of each row (B,) with the teacher's soft labels."""
    soft = (teacher / temperature).softmax(1)  # (B, K)
    own = student / temperature if reading == "hinton" else student
    each = -(soft * own.log_softmax(1)).sum(1)
    return each if reading == "paper" else temperature**2 * each


def count_classes(net: nn.Module, x: Tensor) -> int:
    """Return the number of classes a network tells apart; refuse one without class logits."""
    output = try_pass(net, x)
    if output.dim() != 2 or output.shape[1] < 2:
        raise LupiError(
            "distillation softens the probabilities of classes; this network's output is "
            f"{tuple(output.shape[1:])} per row, not two or more class logits"
        )
    return output.shape[1]
