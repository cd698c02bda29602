"""What two processes of test_torchrun.py do: `torchrun -m torchrun_worker FOLDER SHARDS`."""

import hashlib
import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

import torch
from test_methods import PAIRS, TASKS, Variant, batch_of, in_each_stage, shown_to
from torch import Tensor, distributed, nn

from lupi.core import Batch, Method, Task
from lupi.methods.registry import build_method
from lupi.tasks.registry import build_task
from lupi.train.batch_loss import TrainingLoss, cut
from lupi.train.processes import Processes, start_processes
from lupi.train.run import run
from lupi.train.settings import RunSettings, TrainSettings
from made_runs import SETTINGS, streamed

N_DRAWS = 400
COMPARES_ROWS = ("imagination", "miml-fcn{'weight': 0.1}", "official")
"""What sees other rows of its process, such as a loss that is a sum over them."""


@cache
def task_named(name: str) -> Task:
    return TASKS[name]()


def built(name: str, variant: Variant) -> Method:
    task = task_named(name)
    torch.manual_seed(1)
    method = build_method(variant.method, variant.settings, task.network(), task).double()
    for parameter in method.parameters():  # where h* is zero it does not depend on x*
        parameter.data.add_(0.05 * torch.randn_like(parameter))
    return method


def batch_for(method: Method, n_rows: int) -> Batch:
    """Return rows of which half have x*, in double precision."""
    batch = shown_to(method, batch_of(method.task, 2 * n_rows, xstar_frac=0.5))
    return _double(batch.select(slice(n_rows)))


def gradients(
    processes: Processes, method: Method, batch: Batch, seed: int, module: Any = None
) -> dict[str, Tensor]:
    """Return the gradients of a training pass, which all processes must have alike."""
    torch.manual_seed(seed + 1000 * processes.rank)
    method.train().zero_grad()
    module = module or processes.wrap(TrainingLoss(method))
    (part,) = cut(batch, 1, processes.count, processes.rank)
    processes.backward(module(part).total)
    weights = method.named_parameters()
    return {name: weight.grad.clone() for name, weight in weights if weight.grad is not None}


def check_steps(processes: Processes, name: str, variant: Variant, n_rows: int) -> list[str]:
    """Pass a batch in two processes, and alone; return what is wrong."""
    method = built(name, variant)
    batch = batch_for(method, n_rows)
    label = f"{name} {variant} {n_rows} rows"
    wrong = []
    for stage in in_each_stage(method):
        together = gradients(processes, method, batch, 2)
        for key, gradient in together.items():
            first = gradient.clone()
            distributed.broadcast(first, 0)
            if not gradient.isfinite().all() or not torch.equal(first, gradient):
                wrong.append(f"{label} {stage.name}: {key}")
    if name == "vector" and not any(word in str(variant) for word in COMPARES_ROWS):
        for layer in method.modules():
            if isinstance(layer, nn.Dropout):
                layer.p = 0.0
        for stage in in_each_stage(method):
            alone = [gradients(Processes("64-true", "cpu"), method, batch, seed) for seed in (2, 3)]
            if not all(torch.equal(alone[0][key], alone[1][key]) for key in alone[0]):
                continue  # it draws noise
            together = gradients(processes, method, batch, 2)
            for key, gradient in alone[0].items():
                if not torch.allclose(together[key], gradient, rtol=1e-7, atol=1e-10):
                    wrong.append(f"{label} {stage.name}: {key} differs from one process")
    return wrong


def noisy_gradients(processes: Processes) -> Tensor:
    """Return gradients under noise, (draws, weights)."""
    torch.set_default_dtype(torch.double)
    method = built("vector", Variant("het-dropout", {"budget": "none", "missing": "prior"}))
    batch = batch_for(method, 6)
    module = processes.wrap(TrainingLoss(method))
    every = [gradients(processes, method, batch, seed, module) for seed in range(N_DRAWS)]
    torch.set_default_dtype(torch.float)
    return torch.stack([torch.cat([g.flatten() for g in one.values()]) for one in every])


def resume_together(settings: RunSettings, folder: Path) -> None:
    """Stop a run after its second epoch, and go on."""

    def stop(row: dict[str, Any]) -> None:
        if row["epoch"] == 2:
            raise KeyboardInterrupt

    try:
        run(settings, folder, stop, processes=start_processes(settings.train))
    except KeyboardInterrupt:
        run(settings, folder, processes=start_processes(settings.train))


def _double(batch: Batch) -> Batch:
    def convert(values: Tensor) -> Tensor:
        return values.double() if values.is_floating_point() else values

    assert batch.xstar is not None
    x = tuple(map(convert, batch.x)) if isinstance(batch.x, tuple) else convert(batch.x)
    return batch._replace(x=x, y=convert(batch.y), xstar=convert(batch.xstar))


def rows_seen(shards: str, n_processes: int, rank: int) -> list[list[str]]:
    """Return the training images that a process passes in each of two epochs."""
    settings = streamed(shards, augment={"flip": False, "pad": 0})
    train = build_task(settings.task, settings.network).splits(settings.size, 0).train
    epochs = []
    for epoch in range(2):
        batches = train.batches(settings.train.batch_size, torch.Generator().manual_seed(epoch))
        own = [cut(batch, 1, n_processes, rank)[0] for batch in batches]
        images = [image for part in own if part.share for image in part.batch.x]
        epochs.append([hashlib.sha256(image.numpy()).hexdigest() for image in images])
    return epochs


def main(folder: Path, shards: str) -> None:
    torch.set_default_dtype(torch.double)
    processes = start_processes(TrainSettings(precision="64-true"))
    wrong = []
    for name, variant in PAIRS:
        if name in ("digits", "vector", "sentences"):
            wrong += check_steps(processes, name, variant, 5)
        if name == "vector":
            wrong += check_steps(processes, name, variant, 1)  # none for one of the processes
    noisy = noisy_gradients(processes)
    for name, settings in SETTINGS.items():
        run(settings, folder / name, processes=start_processes(settings.train))
    resume_together(SETTINGS["partial"], folder / "partial-resumed")
    settings = streamed(shards)
    run(settings, folder / "streamed", processes=start_processes(settings.train))
    seen: list[list[list[str]]] = [[], []]
    distributed.all_gather_object(seen, rows_seen(shards, 2, processes.rank))
    if processes.rank == 0:
        torch.save(noisy, folder / "noisy.pt")
        (folder / "seen.json").write_text(json.dumps(seen))
        (folder / "wrong.json").write_text(json.dumps(wrong))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(Path(sys.argv[1]), sys.argv[2])
