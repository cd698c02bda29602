"""Train a method. Knows nothing of what the method is: it has a loss, and a student to score.

All randomness is a function of (seed, attempt, epoch), so a killed run that resumes after its
last finished epoch goes on to the very same numbers.
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any, Literal

import torch
from lightning_fabric import Fabric
from torch.optim import SGD, Adam, AdamW, Optimizer

from lupi.core import Batch, Method, Split, Splits, Task, derive_seed
from lupi.nn.batchnorm import reestimate
from lupi.records import append_row, read_rows, rewrite_rows
from lupi.train.checkpoint import load_state, load_weights, save_state, save_weights
from lupi.train.evaluate import describe_noise, outputs
from lupi.train.schedules import Schedule
from lupi.train.settings import TrainSettings

REESTIMATION_ROWS = 2048
EVALUATION_BATCH = 256

Row = dict[str, Any]


@dataclass(slots=True)
class State:
    """Where a run stands between two epochs, apart from weights and optimizer."""

    attempt: int = 0
    scores: list[float] = field(default_factory=list)
    """Validation score of each epoch of this attempt; higher is better."""
    best_epoch: int = 0
    diverged: bool = False


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
    """
    fabric = Fabric(accelerator="auto", devices=1, precision=settings.precision)
    last, best = folder / "checkpoint/last.safetensors", folder / "checkpoint/student.safetensors"
    saved = load_state(last) if last.exists() else None
    state = State(**saved["state"]) if saved else State()
    metrics = folder / "metrics.jsonl"
    rewrite_rows(metrics, [row for row in read_rows(metrics)[0] if _is_past(row, state)])

    while True:
        method = build(state.attempt)
        optimizer = _optimizer(method, settings)
        if saved:
            method.load_state_dict(saved["method"])
            optimizer.load_state_dict(saved["optimizer"])
            saved = None
        module, optimizer = fabric.setup(method, optimizer)
        schedule = Schedule(settings, state.scores)
        while not (state.diverged or schedule.finished):
            started = time.perf_counter()
            row: Row = {"attempt": state.attempt, "epoch": len(state.scores) + 1, "lr": schedule.lr}
            row["train"] = _train_epoch(fabric, module, optimizer, splits, settings, seed, row)
            row["val"] = _validate(method, task, splits, settings, fabric, row["epoch"])
            row["sites"] = _noise_sites(method, task, splits, fabric)
            row["seconds"] = round(time.perf_counter() - started, 4)
            state.diverged = not (row["train"] and row["val"])
            if not state.diverged:
                score = row["val"][task.metric.name] * (1 if task.metric.higher_is_better else -1)
                if score > max(state.scores, default=-math.inf):
                    state.best_epoch = row["epoch"]
                    save_weights(best, method.net.state_dict())
                state.scores.append(score)
            append_row(metrics, row)
            save_state(
                last,
                {
                    "state": asdict(state),
                    "method": method.state_dict(),
                    "optimizer": optimizer.state_dict(),
                },
            )
            on_epoch(row)
        if not state.diverged or state.attempt >= settings.n_restarts:
            break
        state = State(attempt=state.attempt + 1)
        best.unlink(missing_ok=True)

    if state.best_epoch:
        method.net.load_state_dict(load_weights(best))
    status: Literal["finished", "diverged"] = "diverged" if state.diverged else "finished"
    return Fitted(method, status, state.best_epoch, len(state.scores), state.attempt)


def _is_past(row: Row, state: State) -> bool:
    """Tell whether a row was recorded before the checkpoint; a later one will come again."""
    return (row["attempt"], row["epoch"]) <= (state.attempt, len(state.scores) + state.diverged)


def _optimizer(method: Method, settings: TrainSettings) -> Optimizer:
    s, parameters = settings, method.parameters()
    if s.optimizer == "sgd":
        return SGD(parameters, s.lr, momentum=s.momentum, weight_decay=s.weight_decay)
    cls = Adam if s.optimizer == "adam" else AdamW
    return cls(parameters, s.lr, weight_decay=s.weight_decay)


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
        group["lr"] = row["lr"]
    torch.manual_seed(derive_seed(seed, "noise", row["attempt"], row["epoch"]))
    order = torch.Generator().manual_seed(derive_seed(seed, "order", row["epoch"]))
    module.train()
    totals: dict[str, float] = {}
    n_rows = 0
    for batch in _batches(splits.train, settings, order):
        losses = module(fabric.to_device(batch))
        optimizer.zero_grad()
        fabric.backward(losses.total)
        if settings.clip is not None:
            fabric.clip_gradients(module, optimizer, max_norm=settings.clip)
        optimizer.step()
        n_rows += len(batch.y)
        for name, value in {"loss": losses.total.detach(), **losses.parts}.items():
            totals[name] = totals.get(name, 0.0) + value.item() * len(batch.y)
    means = {name: total / n_rows for name, total in totals.items()}
    return means if all(map(math.isfinite, means.values())) else {}


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
    epoch: int,
) -> dict[str, float]:
    """Return the student's validation metrics; nothing if its outputs say nothing."""
    if settings.reestimate_batchnorm:
        some = islice(splits.train.batches(EVALUATION_BATCH), REESTIMATION_ROWS // EVALUATION_BATCH)
        reestimate(method.net, (fabric.to_device(batch.x) for batch in some))
    output, y = outputs(method, splits.val, EVALUATION_BATCH)
    if not output.isfinite().all():
        return {}
    if epoch >= settings.uniform_after and task.is_uninformative(output):
        return {}
    return task.metrics(output, y)


def _noise_sites(
    method: Method, task: Task, splits: Splits, fabric: Fabric
) -> dict[str, dict[str, float]]:
    if not method.uses_xstar:
        return {}
    batch = next(iter(splits.train.batches(EVALUATION_BATCH)))
    return describe_noise(method, task, fabric.to_device(batch))
