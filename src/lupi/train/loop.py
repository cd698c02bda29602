"""Train any method: all that is used of it are its stages, its loss and its student.

A run makes one or more attempts (a diverged one may start again), an attempt goes through the
method's stages, a stage through epochs, an epoch through batches. All randomness is a function of
(seed, attempt, epoch of the stage). So a killed run resumes after its last saved epoch and reaches
the same numbers, and a student that is trained after its teacher sees the same batches and dropout
as one without.
"""

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any, Literal

import torch

from lupi.core import Batch, Method, Split, Splits, Stage, Task, derive_seed, seed_torch
from lupi.noise.batchnorm import reestimate
from lupi.records import Metric
from lupi.train.batch_loss import TrainingLoss, cut
from lupi.train.checkpoint import TrainingFiles
from lupi.train.evaluate import compute_outputs, describe_noise
from lupi.train.optimizers import Optimizer
from lupi.train.processes import Processes
from lupi.train.schedule import Schedule
from lupi.train.settings import Keep, TrainSettings

Row = dict[str, Any]
"""The metrics of an epoch: a line of metrics.jsonl."""

REESTIMATION_ROWS = 2048
EVALUATION_BATCH = 256


@dataclass(frozen=True, slots=True)
class Fitted:
    """A trained method whose student has the weights of its best epoch (if there was one)."""

    method: Method
    status: Literal["finished", "diverged"]
    best_epoch: int
    epochs: int
    restarts: int


def fit(
    build: Callable[[int], Method],
    task: Task,
    splits: Splits,
    settings: TrainSettings,
    seed: int,
    folder: Path,
    on_epoch: Callable[[Row], None] = lambda row: None,
    processes: Processes | None = None,
) -> Fitted:
    """Train a method, or resume the training that `folder` records.

    Args:
        build: Builds the method for attempt 0, 1, …, with other initial weights each time.
        task: Task, which scores the outputs.
        splits: Training rows with x*, validation rows without.
        settings: How to train.
        seed: Seed of the noise and of the order of batches.
        folder: Folder for metrics.jsonl and checkpoint/.
        on_epoch: Called with each new row of metrics.
        processes: Processes that train together; by default this one alone.
    """
    processes = processes or Processes(settings.precision, settings.device)
    files = TrainingFiles(folder, processes)
    training = _Training(task, splits, settings, seed, files, on_epoch, processes)
    saved = files.resume()
    state = State(**saved["state"]) if saved else State()
    while True:
        method = build(state.attempt)
        method.n_rows = len(splits.train)
        processes.place(method)
        if saved:
            method.load_state_dict(saved["method"])
        stages = method.stages()
        for stage in stages[state.stage :]:
            with method.during(stage):
                training.stage(method, stage, state, saved["optimizer"] if saved else None)
            saved = None
            if state.diverged:
                break
            if stage.validates:
                files.load_best(method)
            state.stage, state.scores = state.stage + 1, []
            # The next stage may replace the best student: a resumed run must not repeat this one.
            files.save(asdict(state), method, at_once=state.stage < len(stages))
        if not state.diverged or state.attempt >= settings.n_restarts:
            break
        files.forget_best()
        state, saved = State(attempt=state.attempt + 1), None
    if state.diverged and state.best_epoch:
        files.load_best(method)
    files.flush()
    return Fitted(
        method,
        status="diverged" if state.diverged else "finished",
        best_epoch=state.best_epoch,
        epochs=state.epoch - state.diverged,
        restarts=state.attempt,
    )


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

    def update(self, row: Row, metric: Metric, keep: Keep) -> bool:
        """Add an epoch; return whether its student is to be kept instead of the one before."""
        self.epoch = row["epoch"]
        self.diverged = not row["train"] or row["val"] == {}
        if self.diverged:
            return False
        if row["val"] is None:
            self.scores.append(-row["train"]["loss"])
            return False
        score: float = row["val"][metric.name] * (1 if metric.higher_is_better else -1)
        is_kept = keep == "last" or score > max(self.scores, default=-math.inf)
        if is_kept:
            self.best_epoch = row["epoch"]
        self.scores.append(score)
        return is_kept


@dataclass(frozen=True, slots=True)
class _Training:
    """What all attempts, stages and epochs of a run share."""

    task: Task
    splits: Splits
    settings: TrainSettings
    seed: int
    files: TrainingFiles
    on_epoch: Callable[[Row], None]
    processes: Processes

    def stage(
        self, method: Method, stage: Stage, state: State, optimizer_state: dict[str, Any] | None
    ) -> None:
        """Train epoch by epoch until the schedule ends; save what is needed to resume."""
        settings = _stage_settings(stage, self.settings)
        module = self.processes.wrap(TrainingLoss(method))
        optimizer = Optimizer(_learning(method.parameter_groups()), settings)
        if optimizer_state:
            optimizer.load_state_dict(optimizer_state)
        schedule = Schedule(settings, state.scores)
        while not (state.diverged or schedule.finished):
            started = time.perf_counter()
            row = state.next_row(stage.name, schedule.lr)
            row["train"] = self.train_epoch(method, module, optimizer, settings, row)
            row["val"] = None
            if stage.validates:
                row["val"] = self.validate(method, settings, row["stage_epoch"])
            row["sites"] = self.noise_sites(method)
            row["seconds"] = round(time.perf_counter() - started, 4)
            row = self.processes.broadcast(row)  # so that all processes decide alike
            if state.update(row, self.task.metric.of_an_epoch, settings.keep):
                # `lupi analyse` reads the helper networks that set the noise.
                self.files.save_best(method, with_helpers=bool(row["sites"]))
            self.files.append(row)
            self.files.save(asdict(state), method, optimizer)
            self.on_epoch(row)

    def train_epoch(
        self,
        method: Method,
        module: Any,
        optimizer: Optimizer,
        settings: TrainSettings,
        row: Row,
    ) -> dict[str, float]:
        """Train for one epoch; return the mean of each loss, or an empty dict if one is not finite.

        `module` is the method's `TrainingLoss`, as `processes` wrapped it. The number of training
        rows is added to `row`.
        """
        processes = self.processes
        for group in optimizer.param_groups:
            group["lr"] = row["lr"] * group.get("lr_factor", 1)
        own = (processes.rank,) if processes.rank else ()  # each process draws its own noise
        seed_torch(derive_seed(self.seed, "noise", row["attempt"], row["stage_epoch"], *own))
        order = torch.Generator().manual_seed(derive_seed(self.seed, "order", row["stage_epoch"]))
        method.train()
        method.start_epoch(row["stage_epoch"])
        totals: dict[str, float] = {}
        n_rows = 0
        for batch in _batches(self.splits.train, settings, order):
            optimizer.zero_grad()
            parts = cut(batch, settings.accumulate, processes.count, processes.rank)
            for part in parts:
                waits = processes.no_sync(module) if part is not parts[-1] else _AT_ONCE
                with waits:
                    total, losses = module(processes.as_input(part))
                    processes.backward(total)
                for name, value in {"loss": total.detach(), **losses}.items():
                    totals[name] = totals.get(name, 0.0) + value.item() * len(batch.y)
            if settings.clip is not None:
                processes.clip(module, optimizer, settings.clip)
            optimizer.step()
            n_rows += len(batch.y)
        row["n_rows"] = n_rows
        means = {name: sum(processes.gather(total)) / n_rows for name, total in totals.items()}
        return means if all(map(math.isfinite, means.values())) else {}

    def validate(
        self, method: Method, settings: TrainSettings, stage_epoch: int
    ) -> dict[str, float]:
        """Return the student's validation metrics; an empty dict if its outputs are useless."""
        self.processes.share_buffers(method)
        if settings.reestimate_batchnorm:
            batches = self.splits.train.batches(EVALUATION_BATCH)
            some = islice(batches, REESTIMATION_ROWS // EVALUATION_BATCH)
            reestimate(method.net, (self.processes.as_input(batch.x) for batch in some))
        outputs = compute_outputs(method, self.splits.val, EVALUATION_BATCH, self.processes)
        if not outputs.output.isfinite().all():
            return {}
        if stage_epoch >= settings.uniform_after and self.task.outcome.is_uninformative(
            outputs.output
        ):
            return {}
        return self.task.outcome.metrics(*outputs)

    def noise_sites(self, method: Method) -> dict[str, dict[str, float]]:
        """Describe the noise at each site for some training rows; empty for methods without x*."""
        if not method.uses_xstar:
            return {}
        batch = next(iter(self.splits.train.batches(EVALUATION_BATCH)))
        return describe_noise(method, self.task, self.processes.as_input(batch))


_AT_ONCE = contextlib.nullcontext()


def _stage_settings(stage: Stage, settings: TrainSettings) -> TrainSettings:
    """Return the training settings of a stage; without validation no schedule can adapt."""
    changes = dict(stage.train)
    if not stage.validates and settings.schedule == "adaptive":
        changes.setdefault("schedule", "constant")
    if not changes:
        return settings
    return TrainSettings.parse({**settings.resolved(), **changes}, f"stage {stage.name}")


def _learning(groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return groups of weights without the weights that a stage froze."""
    learning = [
        {**group, "params": [weight for weight in group["params"] if weight.requires_grad]}
        for group in groups
    ]
    return [group for group in learning if group["params"]]


def _batches(train: Split, settings: TrainSettings, order: torch.Generator) -> Iterator[Batch]:
    """Yield one pass over the rows, or as many passes as `steps_per_epoch` takes."""
    passes = repeat(train, 1) if settings.steps_per_epoch is None else repeat(train)
    batches = chain.from_iterable(
        split.batches(settings.batch_size, shuffle=order) for split in passes
    )
    return islice(batches, settings.steps_per_epoch)
