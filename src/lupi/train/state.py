"""Where a training stands between two epochs, its learning rate, and how it ended."""

import math
from dataclasses import dataclass, field
from typing import Any, Literal

from lupi.core import Method
from lupi.records import Metric
from lupi.train.settings import TrainSettings

Row = dict[str, Any]


@dataclass(slots=True)
class State:
    """State of a run between two epochs, apart from weights and optimizer."""

    attempt: int = 0
    stage: int = 0
    epoch: int = 0
    """Number of epochs of this attempt so far, over all stages."""
    scores: list[float] = field(default_factory=list)
    """Score of each epoch of this stage, higher is better: the student's on validation rows, or
    minus the training loss in a stage that does not validate."""
    best_epoch: int = 0
    diverged: bool = False

    def next_row(self, stage: str, lr: float) -> Row:
        """Return the first entries of the next row of metrics."""
        return {
            "attempt": self.attempt,
            "stage": stage,
            "stage_epoch": len(self.scores) + 1,
            "epoch": self.epoch + 1,
            "lr": lr,
        }

    def update(self, row: Row, metric: Metric) -> bool:
        """Add an epoch; return whether its student is the best of the stage so far."""
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


@dataclass(slots=True)
class Schedule:
    """The learning rate of the next epoch.

    It depends on settings and `scores` only, so a resumed run continues exactly as before.
    """

    settings: TrainSettings
    scores: list[float] = field(default_factory=list)
    """Validation score of each finished epoch; higher is better."""

    @property
    def lr(self) -> float:
        """The learning rate for the next epoch."""
        s, epoch = self.settings, len(self.scores) + 1
        if s.schedule == "adaptive":
            return s.lr * 0.1 ** self._decays()
        if s.schedule == "fixed":
            return s.lr * 0.1 ** ((epoch - 1) // s.step_epochs)
        if s.schedule == "halving":
            return s.lr * 0.5 ** max(0, epoch - 8)
        if s.schedule == "one-cycle":
            return s.lr * _one_cycle(epoch, s.epochs)
        return s.lr

    @property
    def finished(self) -> bool:
        """Whether training ends here."""
        s = self.settings
        if len(self.scores) >= s.epochs:
            return True
        return s.schedule == "adaptive" and self._decays() > s.n_decays

    def _decays(self) -> int:
        """Count the times `patience` epochs passed without a better score."""
        best, waited, decays = float("-inf"), 0, 0
        for score in self.scores:
            best, waited = (score, 0) if score > best else (best, waited + 1)
            if waited == self.settings.patience:
                decays, waited = decays + 1, 0
        return decays


def _one_cycle(epoch: int, n_epochs: int) -> float:
    """Return a factor that rises linearly for a third of training, then falls as a cosine."""
    n_rising = max(1, round(n_epochs / 3))
    if epoch <= n_rising:
        return epoch / n_rising
    return (1 + math.cos(math.pi * (epoch - n_rising) / (n_epochs - n_rising + 1))) / 2


@dataclass(frozen=True, slots=True)
class Fitted:
    """A trained method whose student has the weights of its best epoch (if there was one)."""

    method: Method
    status: Literal["finished", "diverged"]
    best_epoch: int
    epochs: int
    restarts: int
