"""Settings of a run, which decide its numbers, and how it is trained."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, SerializeAsAny, model_validator

from lupi.core import Control
from lupi.records import run_identity
from lupi.settings import Settings, TaskSettings
from lupi.tasks.registry import parse_network, parse_task
from lupi.train.learners import find_learner

Keep = Literal["best", "last"]
"""Which epoch of a run its student is of."""


class TrainSettings(Settings):
    """How to train; the same for every arm unless an arm has settings of its own."""

    epochs: int = Field(60, ge=1)
    """Maximum number of epochs; the adaptive schedule may stop earlier."""
    batch_size: int = Field(64, ge=1)
    """Number of rows per step, however many processes share them."""
    accumulate: int = Field(1, ge=1)
    """Number of passes that the rows of a step are split into, to save memory."""
    steps_per_epoch: int | None = Field(None, ge=1)
    """Number of batches per epoch, whatever the training-set size; by default one pass."""
    optimizer: Literal["adam", "adamw", "sgd"] = "adam"
    """adam, adamw or sgd."""
    lr: float = Field(1e-3, gt=0, le=100)
    """Learning rate."""
    weight_decay: float = Field(1e-4, ge=0)
    """Weight of the squared norm of the weights; adamw decouples it from the gradient."""
    momentum: float = Field(0.9, ge=0, lt=1)
    """Momentum of sgd."""
    schedule: Literal["adaptive", "fixed", "halving", "one-cycle", "constant"] = "adaptive"
    """adaptive: lr / 10 after `patience` epochs without better validation; fixed: lr / 10 every
    `step_epochs`; halving: lr / 2 each epoch after the 8th (translation); one-cycle: up for a third
    of the epochs, then down to zero; constant."""
    patience: int = Field(5, ge=1)
    """Epochs without better validation before the adaptive schedule decays."""
    n_decays: int = Field(2, ge=0)
    """Number of decays after which the adaptive schedule stops instead of decaying again."""
    step_epochs: int = Field(30, ge=1)
    """Epochs between the decays of the fixed schedule."""
    keep: Keep = "best"
    """Which epoch's student is kept: the best on validation rows, or the last. With few validation
    rows and a schedule that ends by itself (one-cycle, fixed), the best is mostly chance."""
    clip: float | None = Field(None, gt=0)
    """Maximum norm of the gradient; by default no limit."""
    reestimate_batchnorm: bool = True
    """Before each evaluation, compute the statistics of batch norms anew in noise-free passes."""
    n_restarts: int = Field(0, ge=0)
    """How often a diverged run may restart from other initial weights; recorded."""
    uniform_after: int = Field(30, ge=1)
    """Number of epochs after which a run whose outputs do not depend on x counts as diverged."""
    n_threads: int = Field(1, ge=1, le=256)
    """Number of torch threads per process. It may change the last digits of results."""
    device: str = Field("auto", pattern=r"^(auto|cpu|mps|cuda(:\d+)?)$")
    """cpu, cuda, cuda:1, mps; auto: a GPU if there is one."""
    precision: Literal["32-true", "64-true", "bf16-mixed"] = "32-true"
    """bf16-mixed: training passes in bfloat16 where that is safe; weights and scores in 32 bits."""


class RunSettings(Settings):
    """Everything that decides the numbers of a run; its hash is the run's identity."""

    task: SerializeAsAny[TaskSettings]
    network: SerializeAsAny[Settings]
    train: TrainSettings = TrainSettings()
    method: str
    """Name of a method or of a classical model."""
    settings: SerializeAsAny[Settings]
    """Settings of the method."""
    control: Control = "real"
    xstar_frac: float = Field(1.0, ge=0, le=1)
    """Fraction of training rows that have x*."""
    size: int = Field(ge=1)
    """Number of training rows."""
    seed: int = Field(ge=0)
    trial: bool = False
    """Whether it is a trial of tuning: scored on validation rows, never reading test rows."""

    @model_validator(mode="before")
    @classmethod
    def _by_names(cls, raw: Any) -> Any:
        """Read each part as the type that the name of the task or method stands for."""
        if not isinstance(raw, Mapping) or not isinstance(raw.get("method"), str):
            return raw  # which is refused
        task, network, settings = (raw.get(key, {}) for key in ("task", "network", "settings"))
        if not isinstance(task, TaskSettings):
            task = parse_task(task)
        if not isinstance(network, Settings):
            network = parse_network(task, network)
        if not isinstance(settings, Settings):
            settings = find_learner(raw["method"]).Settings.parse(settings, "settings")
        return {**raw, "task": task, "network": network, "settings": settings}

    def changed(self, **changes: Any) -> "RunSettings":
        """Return the settings with another size, seed or control, which is validated."""
        return self.parse({**dict(self), **changes}, "")

    @property
    def run_id(self) -> str:
        """Identity of these settings: the name of the run's folder."""
        return run_identity(self.resolved())
