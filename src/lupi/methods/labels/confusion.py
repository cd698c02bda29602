"""One confusion matrix between true classes and labels. A baseline without x*.

    p(label | x) = softmax(f(x)) T,   loss = -log p(y | x) + trace * trace(T) / K

T[i, j] is the probability that class i is labelled j, the same for every row, and learned with
the student; the student is f alone. Sukhbaatar, Bruna, Paluri, Bourdev, Fergus: "Training
convolutional networks with noisy labels", ICLR 2015 workshop. The penalty on the trace, which
assigns ambiguous noise to T: Tanno, Saeedi, Sankaranarayanan, Alexander, Silberman:
"Learning from noisy labels by regularized estimation of annotator confusion", CVPR 2019.
"""

import math
from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from lupi.core import Batch, Losses, Method, RowLoss, Task
from lupi.search import Range, Space
from lupi.settings import Settings


class ConfusionSettings(Settings):
    """Initial values and regularisation of the matrix."""

    right: float = Field(0.9, gt=0, lt=1)
    """Initial probability of a correct label, for every class."""
    trace: float = Field(0.01, ge=0)
    """Weight of the penalty on the mean of T's diagonal."""
    matrix_lr: float = Field(10.0, gt=0, le=1000)
    """Learning rate of T, as a multiple of the student's."""


class Confusion(Method):
    """Train the student together with a confusion matrix."""

    name = "confusion"
    summary = "no x*: one learned confusion matrix between classes and labels"
    uses_xstar = False
    output_kinds = ("classes",)
    Settings = ConfusionSettings
    search: ClassVar[Space] = {
        "settings.right": (0.7, 0.8, 0.9, 0.95),
        "settings.trace": Range(low=0.001, high=0.3, log=True),
        **Method.search,
    }

    def __init__(self, net: nn.Module, task: Task, settings: ConfusionSettings) -> None:
        super().__init__(net, task, settings)
        n = task.n_outputs
        odds = settings.right * (n - 1) / (1 - settings.right)
        self.logits = nn.Parameter(math.log(odds) * torch.eye(n))

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Return the student's weights, and the matrix with its own learning rate."""
        matrix = {"params": [self.logits], "weight_decay": 0.0}
        return [
            *self.student_groups(),
            {**matrix, "lr_factor": self.settings.matrix_lr},
        ]

    @property
    def matrix(self) -> Tensor:
        """T, (K, K): a row for each class, a column for each label."""
        return self.logits.softmax(1)

    def loss(self, batch: Batch) -> Losses:
        """Return the loss of the labels given the matrix, and the penalty on its trace."""
        log_p = self.net(batch.x).log_softmax(1)  # (B, K)
        log_label = (log_p[:, :, None] + self.logits.log_softmax(1)).logsumexp(1)
        each = self.task.example_loss(log_label, batch.y)
        return {
            "task": RowLoss(each),
            "trace": RowLoss(self.matrix.diagonal().mean().expand_as(each), self.settings.trace),
        }
