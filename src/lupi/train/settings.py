"""What decides the numbers of a run, and within it how to train."""

from typing import Any, Literal

from pydantic import Field

from lupi.core import Control
from lupi.records import run_identity
from lupi.settings import Settings
from lupi.tasks.registry import resolve_task
from lupi.train.learners import find_learner


class TrainSettings(Settings):
    """The same for every arm unless an arm says otherwise."""

    epochs: int = Field(60, ge=1)
    """At most; the adaptive schedule may end earlier."""
    batch_size: int = Field(64, ge=1)
    """Rows of a step, however many processes share them."""
    accumulate: int = Field(1, ge=1)
    """Passes that a step's rows are cut into, to save memory."""
    steps_per_epoch: int | None = Field(None, ge=1)
    """An epoch is this many batches, whatever the training-set size; by default one pass."""
    optimizer: Literal["adam", "adamw", "sgd"] = "adam"
    lr: float = Field(1e-3, gt=0, le=100)
    weight_decay: float = Field(1e-4, ge=0)
    momentum: float = Field(0.9, ge=0, lt=1)
    """Of sgd."""
    schedule: Literal["adaptive", "fixed", "halving", "one-cycle", "constant"] = "adaptive"
    """adaptive: lr / 10 after `patience` epochs without better validation; fixed: lr / 10 every
    `step_epochs`; halving: lr / 2 each epoch after the 8th (translation); one-cycle: up for a third
    of the epochs, then down to nothing; constant."""
    patience: int = Field(5, ge=1)
    n_decays: int = Field(2, ge=0)
    """The adaptive schedule stops where it would decay once more than this."""
    step_epochs: int = Field(30, ge=1)
    clip: float | None = Field(None, gt=0)
    """Largest norm of the gradient; none by default."""
    reestimate_batchnorm: bool = True
    """Before each evaluation, replace the batch norms' statistics by those of noise-free passes."""
    n_restarts: int = Field(0, ge=0)
    """How often a diverged run may start again, from other initial weights; recorded."""
    uniform_after: int = Field(30, ge=1)
    """A run whose outputs do not depend on x after this many epochs has diverged."""
    n_threads: int = Field(1, ge=1, le=256)
    """Of torch, in one process; part of the settings, as sums depend on it in the last digit."""
    device: str = Field("auto", pattern=r"^(auto|cpu|mps|cuda(:\d+)?)$")
    """cpu, cuda, cuda:1, mps; auto: a GPU if there is one."""
    precision: Literal["32-true", "64-true", "bf16-mixed"] = "32-true"
    """bf16-mixed: training passes in bfloat16 where that is safe; weights and scores in 32 bits."""


class RunSettings(Settings):
    """Everything that decides the numbers of a run; its hash is the run's identity."""

    task: dict[str, Any]
    network: dict[str, Any] = Field(default_factory=dict)
    train: TrainSettings = TrainSettings()
    method: str
    settings: dict[str, Any] = Field(default_factory=dict)
    """Of the method."""
    control: Control = "real"
    xstar_frac: float = Field(1.0, ge=0, le=1)
    """The fraction of training rows that carry x*."""
    size: int = Field(ge=1)
    """Training rows."""
    seed: int = Field(ge=0)
    trial: bool = False
    """Of tuning: scored on validation rows, while the test rows are never read."""

    def resolve(self) -> "RunSettings":
        """Return the same with every name checked and every default filled in."""
        task, network = resolve_task(self.task, self.network)
        settings = find_learner(self.method).Settings.parse(self.settings, "settings").resolved()
        return self.model_copy(update={"task": task, "network": network, "settings": settings})

    def placed(self, **changes: Any) -> "RunSettings":
        """Return the same with another size, seed, control or trial, which are checked."""
        return self.parse({**self.model_dump(), **changes}, "")

    @property
    def run_id(self) -> str:
        """The identity of these (resolved) settings."""
        return run_identity(self.resolved())
