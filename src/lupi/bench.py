"""What methods cost: ratios of times, measured in turns in one process.

Machines are noisy, so everything alternates: each round times every contestant once, in an order
that rotates, and a ratio is the median of the ratios of the rounds.
"""

import tempfile
import time
from collections.abc import Callable, Mapping
from itertools import chain, repeat
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from lupi.core import Batch, Method
from lupi.data.pictures import Pictures, PictureSplit
from lupi.data.windows import Cropping
from lupi.data.xstar import append_xstar
from lupi.methods.registry import build_method, methods
from lupi.tasks.image import ImageNetworkSettings, ImageTask

IMAGE_SIZE = 64
N_CLASSES = 100
N_WARM_UP = 2
N_STORED = 4096
STORED_SIZE = 72


def measure(rounds: int, batch_size: int, threads: int) -> dict[str, Any]:
    """Time a training step of every method, the input side, and inference without the method."""
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
    with tempfile.TemporaryDirectory() as folder:
        suppliers = {"input": _supply(Path(folder), batch_size), "no-xstar": steps["no-xstar"]}
        input_ratios, input_seconds = _ratios(suppliers, "no-xstar", rounds)

    students = {name: _inference(m.student(), seen[name]) for name, m in built.items()}
    students["plain network"] = _inference(task.network(), batch)
    inference_ratios, inference_seconds = _ratios(students, "plain network", 4 * rounds)
    return {
        "network": "vgg16-bn",
        "image_size": IMAGE_SIZE,
        "batch_size": batch_size,
        "threads": threads,
        "rounds": rounds,
        "input": {
            "supplied_per_second": batch_size / input_seconds["input"],
            "consumed_per_second": batch_size / input_seconds["no-xstar"],
            "ratio": 1 / input_ratios["input"],
        },
        "training_step": _rows(step_ratios, step_seconds, "no-xstar"),
        "student_inference": _rows(inference_ratios, inference_seconds, "plain network"),
    }


def _random_pictures(n: int) -> ImageTask:
    rng = np.random.default_rng(0)
    side = IMAGE_SIZE
    pictures = Pictures(
        rng.integers(0, 256, (n, 3, side, side), dtype=np.uint8),
        rng.integers(0, N_CLASSES, n),
        _random_boxes(n, side, rng),
    )
    network = ImageNetworkSettings(name="vgg16-bn", dropout=0.5)
    return ImageTask(pictures, pictures, pictures, N_CLASSES, network)


def _random_boxes(n: int, side: int, rng: np.random.Generator) -> NDArray[np.int64]:
    start = rng.integers(0, side // 2, (n, 2))
    return np.concatenate([start, start + side // 2], axis=1)


def _supply(folder: Path, batch_size: int) -> Callable[[], None]:
    """Make batches as training on files does: memory-mapped, shuffled, cropped, mirrored."""
    rng = np.random.default_rng(0)
    shape = (N_STORED, 3, STORED_SIZE, STORED_SIZE)
    x = open_memmap(folder / "x.npy", mode="w+", dtype=np.uint8, shape=shape)
    x[:] = rng.integers(0, 256, shape, dtype=np.uint8)
    rows = np.arange(N_STORED)
    pictures = Pictures(x, rows % N_CLASSES, _random_boxes(N_STORED, STORED_SIZE, rng))
    regions, has = pictures.regions(rows, "real", seed=0)
    cropping = Cropping(STORED_SIZE, IMAGE_SIZE, flip=True)
    split = PictureSplit(x, pictures.y, rows, cropping, regions, has)
    order = torch.Generator().manual_seed(0)
    batches = chain.from_iterable(
        split.batches(batch_size, shuffle=order) for split in repeat(split)
    )

    def supply() -> None:
        next(batches)

    return supply


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
