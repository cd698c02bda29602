"""Soft labels: a teacher's class probabilities at a temperature, and the loss of imitating them.

    s = softmax(teacher / T),   loss = cross-entropy(s, softmax(student))

In regression, the teacher predicts a normal distribution. Multiplying its variance by T corresponds
to softmax at temperature T: both are the density to the power 1 / T.

Hinton, Vinyals, Dean: "Distilling the Knowledge in a Neural Network", 2015; Lopez-Paz et al.:
"Unifying distillation and privileged information", ICLR 2016.
"""

from typing import Literal

from torch import Tensor

from lupi.core import OutputKind
from lupi.nn.gaussian import gaussian_cross_entropy, moments

SoftReading = Literal["paper", "official", "hinton"]
"""paper: the student at temperature 1; official: the same times T^2, as in the authors' code;
hinton: the student at temperature T, times T^2."""


def imitation_loss(
    student: Tensor,
    teacher: Tensor,
    temperature: float,
    reading: SoftReading = "paper",
    kind: OutputKind = "classes",
) -> Tensor:
    """Return the cross-entropy of each row (B,) with the teacher's soft labels."""
    own = temperature if reading == "hinton" else 1.0
    if kind == "gaussian":
        mean, logvar = moments(teacher)
        each = gaussian_cross_entropy(student, mean, temperature * logvar.exp(), own)
    else:
        soft = (teacher / temperature).softmax(1)  # (B, K)
        each = -(soft * (student / own).log_softmax(1)).sum(1)
    return each if reading == "paper" else temperature**2 * each
