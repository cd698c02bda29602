"""What two processes of test_torchrun.py do: `torchrun -m torchrun_worker FOLDER SHARDS`."""

import hashlib
import json
import os
import sys
from functools import cache
from pathlib import Path

import torch
from test_methods import PAIRS, TASKS, Variant, batch_of, in_each_stage, shown_to
from torch import Tensor, distributed

from lupi.core import Batch, Method, Task
from lupi.methods.registry import build_method
from lupi.tasks.registry import build_task
from lupi.train.parallel.processes import start_processes
from lupi.train.passes import parts_of, training_pass
from lupi.train.run import run
from lupi.train.settings import TrainSettings
from made_runs import SETTINGS, streamed
from reduced import losses_of


@cache
def task_named(name: str) -> Task:
    return TASKS[name]()


def differences(name: str, variant: Variant, n_rows: int) -> list[str]:
    """Pass a batch, half of whose rows have x*, whole and in two parts; return what differs."""
    task = task_named(name)
    torch.manual_seed(1)
    method = build_method(variant.method, variant.settings, task.network(), task).double()
    for parameter in method.parameters():  # where h* is zero it does not depend on x*
        parameter.data.add_(0.05 * torch.randn_like(parameter))
    batch = shown_to(method, batch_of(task, 2 * n_rows, xstar_frac=0.5)).select(slice(n_rows))
    different = []
    for stage in in_each_stage(method):
        whole, cut = _numbers(method, batch, 1), _numbers(method, batch, 2)
        different += [
            f"{name} {variant} {stage.name} {n_rows} rows: {key}"
            for key in whole.keys() | cut.keys()
            if key not in whole
            or key not in cut
            or not torch.allclose(whole[key], cut[key], rtol=1e-7, atol=1e-10)
        ]
    return different


def _numbers(method: Method, batch: Batch, n_processes: int) -> dict[str, Tensor]:
    """Return losses, gradients and what batch norms keep of a training pass."""
    before = {name: buffer.clone() for name, buffer in method.named_buffers()}
    torch.manual_seed(2)
    method.train().zero_grad()
    rank = int(os.environ["RANK"]) if n_processes > 1 else 0
    (part,) = parts_of(_double(batch), 1, n_processes, rank)
    with training_pass(method, part):
        losses = losses_of(method, part)
    losses.total.backward()
    numbers = {"loss": losses.total.detach(), **losses.parts}
    numbers |= {key: w.grad for key, w in method.named_parameters() if w.grad is not None}
    numbers = {key: value.clone() for key, value in numbers.items()}  # some share their memory
    for value in numbers.values():
        if n_processes > 1:
            distributed.all_reduce(value)
    for key, buffer in method.named_buffers():
        numbers[f"{key} after it"] = buffer.clone()
        buffer.copy_(before[key])
    return numbers


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
        own = [parts_of(batch, 1, n_processes, rank)[0] for batch in batches]
        images = [image for batch in own for image in batch.x]
        epochs.append([hashlib.sha256(image.numpy()).hexdigest() for image in images])
    return epochs


def main(folder: Path, shards: str) -> None:
    processes = start_processes(TrainSettings())
    found = []
    for name, variant in PAIRS:
        if variant.settings.get("xstar_pass_frac", 1) < 1:
            continue  # refused with several processes
        if name in ("digits", "vector", "sentences"):
            found += differences(name, variant, 5)
        if name == "vector":
            found += differences(name, variant, 1)  # none for one of the processes
    for name, settings in SETTINGS.items():
        run(settings, folder / name, processes=start_processes(settings.train))
    settings = streamed(shards)
    run(settings, folder / "streamed", processes=start_processes(settings.train))
    seen: list[list[list[str]]] = [[], []]
    distributed.all_gather_object(seen, rows_seen(shards, 2, processes.rank))
    if processes.rank == 0:
        (folder / "seen.json").write_text(json.dumps(seen))
        (folder / "differences.json").write_text(json.dumps(found))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(Path(sys.argv[1]), sys.argv[2])
