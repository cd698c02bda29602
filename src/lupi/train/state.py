"""Where a training stands between two epochs, and how it ended."""

import math
from dataclasses import dataclass, field
from typing import Any, Literal

from lupi.core import Method
from lupi.records import Metric

Row = dict[str, Any]


@dataclass(slots=True)
class State:
    """Where a run stands between two epochs, apart from weights and optimizer."""

    attempt: int = 0
    stage: int = 0
    epoch: int = 0
    """Epochs of this attempt so far, over all stages."""
    scores: list[float] = field(default_factory=list)
    """Score of each epoch of this stage, higher is better: the student's on validation rows, or
    minus the training loss in a stage that does not validate."""
    best_epoch: int = 0
    diverged: bool = False

    def next_row(self, stage: str, lr: float) -> Row:
        """Return the beginning of the next row of metrics."""
        return {
            "attempt": self.attempt,
            "stage": stage,
            "stage_epoch": len(self.scores) + 1,
            "epoch": self.epoch + 1,
            "lr": lr,
        }

    def take(self, row: Row, metric: Metric) -> bool:
        """Take note of an epoch, and tell whether its student is the best of the stage so far."""
        self.epoch = row["epoch"]
        self.diverged = not row["train"] or row["val"] == {}
        if self.diverged:
            return False
        if row["val"] is None:
            self.scores.append(-row["train"]["loss"])
            return False
        score: float = row["val"][metric.name] * (1 if metric.higher_is_better else -1)
        is_best = score > max(self.scores, default=-math.inf)
        if is_best:
            self.best_epoch = row["epoch"]
        self.scores.append(score)
        return is_best


@dataclass(frozen=True, slots=True)
class Fitted:
    """A trained method whose student has the weights of its best epoch (if there was one)."""

    method: Method
    status: Literal["finished", "diverged"]
    best_epoch: int
    epochs: int
    restarts: int
