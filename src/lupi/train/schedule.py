"""Learning rates by epoch, and when training ends."""

import math
from dataclasses import dataclass, field

from lupi.train.settings import TrainSettings


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
