"""What methods cost: ratios of times, measured in turns in one process.

Machines are noisy, so everything alternates: each round times every contestant once, in an order
that rotates, and a ratio is the median of the ratios of the rounds.
"""

import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

import numpy as np
import torch

from lupi.core import Batch, Method
from lupi.data.pictures import Pictures
from lupi.data.xstar import append_xstar
from lupi.methods.registry import build_method, methods
from lupi.tasks.image import ImageNetworkSettings, ImageTask

IMAGE_SIZE = 64
N_CLASSES = 100
N_WARM_UP = 2


def measure(rounds: int, batch_size: int, threads: int) -> dict[str, Any]:
    """Time a training step of every method, and inference with the method detached."""
    torch.set_num_threads(threads)
    task = _random_pictures(batch_size)
    batch = next(iter(task.splits(batch_size, seed=0).train.batches(batch_size)))
    built = {name: build_method(name, {}, task.network(), task) for name in methods()}
    seen = {
        name: append_xstar(batch) if method.sees_xstar_at_test else batch
        for name, method in built.items()
    }
    steps = {name: _training_step(method, seen[name]) for name, method in built.items()}
    step_ratios, step_seconds = _ratios(steps, "no-xstar", rounds)

    students = {name: _inference(m.student(), seen[name]) for name, m in built.items()}
    students["plain network"] = _inference(task.network(), batch)
    inference_ratios, inference_seconds = _ratios(students, "plain network", 4 * rounds)
    return {
        "network": "vgg16-bn",
        "image_size": IMAGE_SIZE,
        "batch_size": batch_size,
        "threads": threads,
        "rounds": rounds,
        "training_step": _rows(step_ratios, step_seconds, "no-xstar"),
        "student_inference": _rows(inference_ratios, inference_seconds, "plain network"),
    }


def _random_pictures(n: int) -> ImageTask:
    rng = np.random.default_rng(0)
    side = IMAGE_SIZE
    start = rng.integers(0, side // 2, (n, 2))
    pictures = Pictures(
        rng.integers(0, 256, (n, 3, side, side), dtype=np.uint8),
        rng.integers(0, N_CLASSES, n),
        np.concatenate([start, start + side // 2], axis=1),
    )
    network = ImageNetworkSettings(name="vgg16-bn", dropout=0.5)
    return ImageTask(pictures, pictures, pictures, N_CLASSES, network)


def _training_step(method: Method, batch: Batch) -> Callable[[], None]:
    optimizer = torch.optim.Adam(method.parameters(), 1e-3)
    method.train()

    def step() -> None:
        optimizer.zero_grad()
        method(batch).total.backward()
        optimizer.step()

    return step


def _inference(net: torch.nn.Module, batch: Batch) -> Callable[[], None]:
    net.eval()

    def infer() -> None:
        with torch.inference_mode():
            net(batch.x)

    return infer


def _ratios(
    contestants: Mapping[str, Callable[[], None]], base: str, rounds: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the ratio of each to the base, and the median seconds of each."""
    for contestant in contestants.values():
        for _ in range(N_WARM_UP):
            contestant()
    names = list(contestants)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds):
        for i in range(len(names)):
            name = names[(turn + i) % len(names)]
            started = time.perf_counter()
            contestants[name]()
            seconds[name].append(time.perf_counter() - started)
    ratios = {
        name: median(a / b for a, b in zip(times, seconds[base], strict=True))
        for name, times in seconds.items()
    }
    return ratios, {name: median(times) for name, times in seconds.items()}


def _rows(
    ratios: Mapping[str, float], seconds: Mapping[str, float], base: str
) -> list[dict[str, Any]]:
    return [
        {"name": name, "over": base, "ratio": ratios[name], "seconds": seconds[name]}
        for name in ratios
    ]
