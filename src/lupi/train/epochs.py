"""One epoch: training passes over the batches, then scores of the student."""

import math
from collections.abc import Iterator
from itertools import chain, islice, repeat
from typing import Any

import torch

from lupi.core import Batch, Method, Split, Splits, Task, derive_seed, seed_torch
from lupi.nn.batchnorm import reestimate
from lupi.train.evaluate import describe_noise, outputs
from lupi.train.losses import Reduced
from lupi.train.parallel.parts import parts_of, training_pass
from lupi.train.parallel.processes import Processes
from lupi.train.settings import TrainSettings
from lupi.train.state import Row

REESTIMATION_ROWS = 2048
EVALUATION_BATCH = 256


def train_epoch(
    processes: Processes,
    method: Method,
    module: Any,
    optimizer: Any,
    train: Split,
    settings: TrainSettings,
    seed: int,
    row: Row,
) -> dict[str, float]:
    """Return the mean of each loss part over the epoch; nothing if it is not finite.

    Args:
        processes: that share the batches.
        method: whose weights change.
        module: the method's loss, as `processes` wrapped it.
        optimizer: of these weights.
        train: training rows.
        settings: how to train.
        seed: of noise and order.
        row: which epoch it is, and its learning rate.
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
        for losses in _passes(processes, method, module, batch, settings.accumulate):
            for name, value in {"loss": losses.total.detach(), **losses.parts}.items():
                totals[name] = totals.get(name, 0.0) + value.item() * len(batch.y)
        if settings.clip is not None:
            processes.clip(module, optimizer, settings.clip)
        optimizer.step()
        n_rows += len(batch.y)
    means = {name: sum(processes.gather(total)) / n_rows for name, total in totals.items()}
    return means if all(map(math.isfinite, means.values())) else {}


def _passes(
    processes: Processes, method: Method, module: Any, batch: Batch, accumulate: int
) -> Iterator[Reduced]:
    """Pass what this process has of a batch forward and back, and yield the losses."""
    parts = parts_of(batch, accumulate, processes.count, processes.rank)
    for part in parts[:-1]:
        # All passes draw the noise of the whole batch, and the last one leaves its state.
        devices = [processes.device] if processes.device.type == "cuda" else []
        with torch.random.fork_rng(devices), processes.no_sync(module):
            losses = _pass(processes, method, module, part)
        yield losses
    yield _pass(processes, method, module, parts[-1])


def _pass(processes: Processes, method: Method, module: Any, part: Batch) -> Reduced:
    with training_pass(method, part):
        losses: Reduced = module(processes.as_input(part))
    # Gradients add up, where data-parallel training would take their mean.
    processes.backward(losses.total * processes.count if processes.count > 1 else losses.total)
    return losses


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
    """Return the student's validation metrics; nothing if its outputs say nothing."""
    if settings.reestimate_batchnorm:
        some = islice(splits.train.batches(EVALUATION_BATCH), REESTIMATION_ROWS // EVALUATION_BATCH)
        reestimate(method.net, (processes.as_input(batch.x) for batch in some))
    found = outputs(method, splits.val, EVALUATION_BATCH, processes)
    if not found.output.isfinite().all():
        return {}
    if stage_epoch >= settings.uniform_after and task.is_uninformative(found.output):
        return {}
    return task.metrics(*found)


def noise_sites(
    processes: Processes, method: Method, task: Task, train: Split
) -> dict[str, dict[str, float]]:
    """Describe the noise at each site, for training rows; nothing of a method without x*."""
    if not method.uses_xstar:
        return {}
    batch = next(iter(train.batches(EVALUATION_BATCH)))
    return describe_noise(method, task, processes.as_input(batch))
