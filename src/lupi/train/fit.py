"""Train a method. Knows nothing of what the method is: it has a loss, and a student to score.

All randomness is a function of (seed, attempt, epoch of the stage), so a killed run that resumes
after its last finished epoch goes on to the very same numbers, and a student that comes after its
teacher sees the batches and the dropout of a student without one.
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any, Literal

import torch
from lightning_fabric import Fabric
from torch.optim import SGD, Adam, AdamW, Optimizer

from lupi.core import Batch, Method, Split, Splits, Stage, Task, derive_seed
from lupi.nn.batchnorm import reestimate
from lupi.records import Metric
from lupi.train.evaluate import describe_noise, outputs
from lupi.train.files import TrainingFiles
from lupi.train.losses import Reduced, reduce
from lupi.train.parts import parts_of, passing
from lupi.train.processes import alone, as_input, placed, total_over
from lupi.train.schedules import Schedule
from lupi.train.settings import TrainSettings

REESTIMATION_ROWS = 2048
EVALUATION_BATCH = 256

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


def fit(
    build: Callable[[int], Method],
    task: Task,
    splits: Splits,
    settings: TrainSettings,
    seed: int,
    folder: Path,
    on_epoch: Callable[[Row], None] = lambda row: None,
    fabric: Fabric | None = None,
) -> Fitted:
    """Train, or go on training, the run that lives in `folder`.

    Args:
        build: makes the method for attempt 0, 1, …: other initial weights each time.
        task: scores the outputs.
        splits: training rows with x*, validation rows without.
        settings: how to train.
        seed: of the noise and of the batch order.
        folder: for metrics.jsonl and checkpoint/.
        on_epoch: called with each new row of metrics.
        fabric: of the processes that train together; by default this one alone.
    """
    fabric = fabric or alone(settings)
    files = TrainingFiles(folder, fabric)
    saved = files.resume()
    state = State(**saved["state"]) if saved else State()

    while True:
        method = placed(fabric, build(state.attempt))
        method.n_rows = len(splits.train)
        if saved:
            method.load_state_dict(saved["method"])
        for stage in method.stages()[state.stage :]:
            with method.during(stage):
                module = fabric.setup_module(method)
                its = _settings_in(stage, settings)
                optimizer: Any = fabric.setup_optimizers(_optimizer(method, its))
                if saved and saved["optimizer"]:
                    optimizer.load_state_dict(saved["optimizer"])
                saved = None
                schedule = Schedule(its, state.scores)
                while not (state.diverged or schedule.finished):
                    started = time.perf_counter()
                    row = state.next_row(stage.name, schedule.lr)
                    method.start_epoch(row["stage_epoch"])
                    row["train"] = _train_epoch(fabric, module, optimizer, splits, its, seed, row)
                    row["val"] = None
                    if stage.validates:
                        row["val"] = _validate(method, task, splits, its, fabric, row)
                    row["sites"] = _noise_sites(method, task, splits, fabric)
                    row["seconds"] = round(time.perf_counter() - started, 4)
                    row = fabric.broadcast(row)  # so that all processes decide alike
                    if state.take(row, task.metric.of_an_epoch):
                        # with noise that `lupi analyse` can look at
                        files.save_best(method, with_helpers=bool(row["sites"]))
                    files.append(row)
                    files.save(asdict(state), method, optimizer)
                    on_epoch(row)
            if state.diverged:
                break
            if stage.validates:
                files.load_best(method)
            # From here on the next stage may replace the best student: never go back.
            state = replace(state, stage=state.stage + 1, scores=[])
            files.save(asdict(state), method)
        if not state.diverged or state.attempt >= settings.n_restarts:
            break
        state = State(attempt=state.attempt + 1)
        files.forget_best()

    if state.diverged and state.best_epoch:
        files.load_best(method)
    status: Literal["finished", "diverged"] = "diverged" if state.diverged else "finished"
    n_epochs = state.epoch - state.diverged
    return Fitted(method, status, state.best_epoch, n_epochs, state.attempt)


def _settings_in(stage: Stage, settings: TrainSettings) -> TrainSettings:
    """Return how to train in a stage; without validation there is nothing to adapt to."""
    changes = dict(stage.train)
    if not stage.validates and settings.schedule == "adaptive":
        changes.setdefault("schedule", "constant")
    return TrainSettings.parse({**settings.resolved(), **changes}, f"stage {stage.name}")


def _optimizer(method: Method, settings: TrainSettings) -> Optimizer:
    s = settings
    groups = [
        {**group, "params": [w for w in group["params"] if w.requires_grad]}
        for group in method.parameter_groups()
    ]
    parameters = [group for group in groups if group["params"]]
    if s.optimizer == "sgd":
        return SGD(parameters, s.lr, momentum=s.momentum, weight_decay=s.weight_decay)
    cls = Adam if s.optimizer == "adam" else AdamW
    # All tensors in one call: the same bits, and less of Python in the steps of small networks.
    return cls(parameters, s.lr, weight_decay=s.weight_decay, foreach=True)


def _train_epoch(
    fabric: Fabric,
    module: Any,
    optimizer: Any,
    splits: Splits,
    settings: TrainSettings,
    seed: int,
    row: Row,
) -> dict[str, float]:
    """Return the mean of each loss part over the epoch; nothing if it is not finite."""
    for group in optimizer.param_groups:
        group["lr"] = row["lr"] * group.get("lr_factor", 1)
    torch.manual_seed(derive_seed(seed, "noise", row["attempt"], row["stage_epoch"]))
    order = torch.Generator().manual_seed(derive_seed(seed, "order", row["stage_epoch"]))
    module.train()
    totals: dict[str, float] = {}
    n_rows = 0
    for batch in _batches(splits.train, settings, order):
        optimizer.zero_grad()
        for losses in _passes(fabric, module, batch, settings.accumulate):
            for name, value in {"loss": losses.total.detach(), **losses.parts}.items():
                totals[name] = totals.get(name, 0.0) + value.item() * len(batch.y)
        if settings.clip is not None:
            fabric.clip_gradients(module, optimizer, max_norm=settings.clip)
        optimizer.step()
        n_rows += len(batch.y)
    means = {name: total_over(fabric, total) / n_rows for name, total in totals.items()}
    return means if all(map(math.isfinite, means.values())) else {}


def _passes(fabric: Fabric, module: Any, batch: Batch, accumulate: int) -> Iterator[Reduced]:
    """Pass what this process has of a batch forward and back, and yield the losses."""
    n_processes = fabric.world_size
    parts = parts_of(batch, accumulate, n_processes, fabric.global_rank)
    for i, part in enumerate(parts, start=1):
        is_last = i == len(parts)
        # All passes draw the noise of the whole batch, and the last one leaves its state.
        devices = [fabric.device] if fabric.device.type == "cuda" else []
        with (
            torch.random.fork_rng(devices, enabled=not is_last),
            fabric.no_backward_sync(module, enabled=not is_last),
        ):
            with passing(module, part):
                losses = reduce(module(fabric.to_device(part)), part)
            # Gradients add up, where data-parallel training would take their mean.
            fabric.backward(losses.total * n_processes if n_processes > 1 else losses.total)
        yield losses


def _batches(train: Split, settings: TrainSettings, order: torch.Generator) -> Iterator[Batch]:
    """Yield one pass over the rows, or as many passes as `steps_per_epoch` takes."""
    passes = repeat(train, 1) if settings.steps_per_epoch is None else repeat(train)
    batches = chain.from_iterable(
        split.batches(settings.batch_size, shuffle=order) for split in passes
    )
    return islice(batches, settings.steps_per_epoch)


def _validate(
    method: Method,
    task: Task,
    splits: Splits,
    settings: TrainSettings,
    fabric: Fabric,
    row: Row,
) -> dict[str, float]:
    """Return the student's validation metrics; nothing if its outputs say nothing."""
    if settings.reestimate_batchnorm:
        some = islice(splits.train.batches(EVALUATION_BATCH), REESTIMATION_ROWS // EVALUATION_BATCH)
        reestimate(method.net, (as_input(fabric, batch.x) for batch in some))
    output, y = outputs(method, splits.val, EVALUATION_BATCH, fabric)
    if not output.isfinite().all():
        return {}
    if row["stage_epoch"] >= settings.uniform_after and task.is_uninformative(output):
        return {}
    return task.metrics(output, y)


def _noise_sites(
    method: Method, task: Task, splits: Splits, fabric: Fabric
) -> dict[str, dict[str, float]]:
    if not method.uses_xstar:
        return {}
    batch = next(iter(splits.train.batches(EVALUATION_BATCH)))
    return describe_noise(method, task, as_input(fabric, batch))
