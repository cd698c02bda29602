"""One epoch: training passes over the batches, then scores of the student."""

import math
from collections.abc import Iterator
from itertools import chain, islice, repeat
from typing import Any

import torch

from lupi.core import Batch, Method, Split, Splits, Task, derive_seed, seed_torch
from lupi.nn.batchnorm import reestimate
from lupi.train.evaluate import compute_outputs, describe_noise
from lupi.train.optimizers import Optimizer
from lupi.train.parallel.processes import Processes
from lupi.train.passes import run_passes
from lupi.train.settings import TrainSettings
from lupi.train.state import Row

REESTIMATION_ROWS = 2048
EVALUATION_BATCH = 256


def train_epoch(
    processes: Processes,
    method: Method,
    module: Any,
    optimizer: Optimizer,
    train: Split,
    settings: TrainSettings,
    seed: int,
    row: Row,
) -> dict[str, float]:
    """Train for one epoch; return the mean of each loss, or an empty dict if one is not finite.

    Args:
        processes: Processes that share the batches.
        method: Method to train.
        module: Its `TrainingLoss`, as `processes` wrapped it.
        optimizer: Optimizer of its weights.
        train: Training rows.
        settings: How to train.
        seed: Seed of the noise and of the order of rows.
        row: Row of metrics so far: number of the epoch and learning rate.
    """
    for group in optimizer.param_groups:
        group["lr"] = row["lr"] * group.get("lr_factor", 1)
    seed_torch(derive_seed(seed, "noise", row["attempt"], row["stage_epoch"]))
    order = torch.Generator().manual_seed(derive_seed(seed, "order", row["stage_epoch"]))
    method.train()
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    totals: dict[str, float] = {}
    n_rows = 0
    for batch in _batches(train, settings, order):
        for weight in weights:
            weight.grad = None
        for losses in run_passes(processes, method, module, batch, settings.accumulate):
            for name, value in {"loss": losses.total.detach(), **losses.parts}.items():
                totals[name] = totals.get(name, 0.0) + value.item() * len(batch.y)
        if settings.clip is not None:
            processes.clip(module, optimizer, settings.clip)
        optimizer.step()
        n_rows += len(batch.y)
    means = {name: sum(processes.gather(total)) / n_rows for name, total in totals.items()}
    return means if all(map(math.isfinite, means.values())) else {}


def _batches(train: Split, settings: TrainSettings, order: torch.Generator) -> Iterator[Batch]:
    """Yield one pass over the rows, or as many passes as `steps_per_epoch` takes."""
    passes = repeat(train, 1) if settings.steps_per_epoch is None else repeat(train)
    batches = chain.from_iterable(
        split.batches(settings.batch_size, shuffle=order) for split in passes
    )
    return islice(batches, settings.steps_per_epoch)


def validate(
    processes: Processes,
    method: Method,
    task: Task,
    splits: Splits,
    settings: TrainSettings,
    stage_epoch: int,
) -> dict[str, float]:
    """Return the student's validation metrics; an empty dict if its outputs are useless."""
    if settings.reestimate_batchnorm:
        some = islice(splits.train.batches(EVALUATION_BATCH), REESTIMATION_ROWS // EVALUATION_BATCH)
        reestimate(method.net, (processes.as_input(batch.x) for batch in some))
    outputs = compute_outputs(method, splits.val, EVALUATION_BATCH, processes)
    if not outputs.output.isfinite().all():
        return {}
    if stage_epoch >= settings.uniform_after and task.is_uninformative(outputs.output):
        return {}
    return task.metrics(*outputs)


def noise_sites(
    processes: Processes, method: Method, task: Task, train: Split
) -> dict[str, dict[str, float]]:
    """Describe the noise at each site for some training rows; empty for a method without x*."""
    if not method.uses_xstar:
        return {}
    batch = next(iter(train.batches(EVALUATION_BATCH)))
    return describe_noise(method, task, processes.as_input(batch))
