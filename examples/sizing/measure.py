"""Count what a training step of every arm in the paper's settings files costs.

    python examples/sizing/measure.py

It adds to measured.json beside it what that lacks: delete the file to measure anew. Operations and
bytes are counted, hence the same on every machine. Seconds are CPU time of one thread, the median
of five steps in turns with no-xstar, without the optimizer: trust their ratios only.
"""

import gc
import io
import json
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.flop_counter import FlopCounterMode

from lupi.comparison.settings import ArmSettings, ComparisonSettings
from lupi.configs import find_settings, settings_names
from lupi.core import Batch, Method
from lupi.loaders.images.batches import Images
from lupi.loaders.images.decode import decode_image
from lupi.loaders.xstar.reveal import append_xstar
from lupi.methods.registry import build_method
from lupi.records import write_json
from lupi.settings import merge, read_yaml
from lupi.tasks.images.image import task_of_images
from lupi.tasks.images.network import ImageNetworkSettings
from lupi.train.batch_loss import Part, reduce

SIDE, N_CLASSES, BATCH, STORED, TURNS = 224, 1000, 2, 256, 5


def paper_files() -> Iterator[tuple[str, ComparisonSettings]]:
    """Yield the settings files of the paper's tables and figures."""
    for name in settings_names():
        if name.startswith("paper/"):
            yield name, ComparisonSettings.parse(read_yaml(find_settings(Path(name))), "")


def kind(arm: ArmSettings, network: dict[str, Any]) -> str:
    """Name what decides the cost of a step: the method, and what is unusual about the rest."""
    extra = [network["name"]] if network["name"] != "vgg16-bn" else []
    method = arm.method.removesuffix("-official")  # the same steps
    return " ".join([method, *extra, *(["curriculum"] if "curriculum" in arm.settings else [])])


def build(method: str, settings: dict[str, Any], network: dict[str, Any]) -> tuple[Method, Batch]:
    """Return a method over a student at the paper's scale, and two images for it."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (BATCH, 3, SIDE, SIDE), dtype=np.uint8)
    boxes = np.array([[40, 30, 180, 190]] * BATCH)
    images = Images(x, rng.integers(0, N_CLASSES, BATCH), boxes)
    of_images = ImageNetworkSettings.parse(network, "network")
    task = task_of_images(images, N_CLASSES, of_images).for_run(BATCH, 0)
    built = build_method(method, settings, task.network(), task)
    batch = next(iter(task.splits(BATCH, 0).train.batches(BATCH)))
    return built.train(), append_xstar(batch) if built.sees_xstar_at_test else batch


def step(method: Method, batch: Batch) -> None:
    """Go forward and backward."""
    method.zero_grad()
    reduce(method.loss(batch), Part(batch)).total.backward()


def seconds(method: Method, batch: Batch) -> float:
    """Time a step in CPU seconds."""
    started = time.process_time()
    step(method, batch)
    return time.process_time() - started


def saved_bytes(method: Method, batch: Batch) -> int:
    """Return what a forward pass keeps for the backward one, without the weights."""
    weights = {weight.untyped_storage().data_ptr() for weight in method.parameters()}
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with saved_tensors_hooks(keep, lambda tensor: tensor):
        method.loss(batch)
    return sum(kept.values())


def count(method: Method, batch: Batch) -> list[dict[str, Any]]:
    """Count each stage of a method's training, for an image."""
    stages = []
    for stage in method.stages():
        with method.during(stage), FlopCounterMode(display=False) as counter:
            step(method, batch)
        told = {"stage": stage.name, "epochs": stage.train.get("epochs")}
        stages.append({**told, "flops": counter.get_total_flops() // BATCH})
    return stages


def measure(
    arm: ArmSettings, network: dict[str, Any], base: tuple[Method, Batch]
) -> dict[str, Any]:
    """Count and time an arm, in turns with the base."""
    method, batch = build(arm.method, arm.settings, network)
    with FlopCounterMode(display=False) as inference, torch.no_grad():
        method.eval().predict(batch.x)
    method.train()
    told = {
        "stages": count(method, batch),
        "inference_flops": inference.get_total_flops() // BATCH,
        "n_weights": sum(weight.numel() for weight in method.parameters()),
    }
    with method.during(method.stages()[-1]):
        told["saved_bytes"] = saved_bytes(method, batch) // BATCH
        turns = [(seconds(*base), seconds(method, batch)) for _ in range(TURNS)]
    told["cpu_seconds_of_no_xstar"], told["cpu_seconds"] = map(median, zip(*turns, strict=True))
    return told


def decoding() -> dict[str, float]:
    """Time the decoding of a JPEG with the sides and the bytes of ImageNet's mean."""
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 256, (94, 125, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(coarse).resize((500, 375), Image.Resampling.BICUBIC).save(
        file, "JPEG", quality=90
    )
    started, n = time.process_time(), 100
    for _ in range(n):
        decode_image(file.getvalue(), STORED, "crop")
    return {"bytes": len(file.getvalue()), "per_cpu_second": n / (time.process_time() - started)}


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    path = Path(__file__).with_name("measured.json")
    measured: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"kinds": {}}
    base = build("no-xstar", {}, {"name": "vgg16-bn", "dropout": 0.5})
    step(*base)  # the first is slow
    for _, settings in paper_files():
        for arm in settings.arms.values():
            network = merge(settings.network, arm.network)
            if (name := kind(arm, network)) not in measured["kinds"]:
                measured["kinds"][name] = measure(arm, network, base)
                gc.collect()  # methods and their hooks hold on to each other
                write_json(path, measured)
    write_json(path, {**measured, "decoding": decoding()})
