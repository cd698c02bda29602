"""The cost of methods on images, as ratios measured in one process.

    python benchmarks/images.py het-dropout      (about two minutes on one core)

A training step of a VGG-16-BN at 64x64 compared with that of no-xstar, the inference of the
student compared with a plain network, and the preparation of a batch compared with the step that
uses it. Both sides of a ratio alternate, so a busy machine affects both: trust only the ratios.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, repeat
from pathlib import Path

import numpy as np
import torch
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from lupi.core import Batch, Task
from lupi.loaders.images.batches import ImageBatches, Images, ImageSplit
from lupi.loaders.images.windows import Cropping
from lupi.loaders.xstar.reveal import append_xstar
from lupi.methods.registry import build_method, methods
from lupi.ship.onnx_file import OnnxNetwork, write_onnx
from lupi.tasks.images.image import task_of_images
from lupi.tasks.images.network import ImageNetworkSettings
from turns import Row, Timing, print_rows, time_in_turns, training_step

NETWORK = "vgg16-bn"
IMAGE_SIZE = 64
N_CLASSES = 100
N_STORED = 4096
STORED_SIZE = 72


def measure(
    names: Sequence[str], rounds: int, batch_size: int, threads: int, onnx: bool = False
) -> Iterator[Row]:
    """Time the input pipeline, then each method's training step and its student's inference.

    A method is timed alternately with `no-xstar`, and its student with a plain network (with
    `onnx`, also the exported ones). At most two networks in training are in memory at a time.
    """
    torch.set_num_threads(threads)
    task = _random_images(batch_size)
    batch = next(iter(task.splits(batch_size, seed=0).train.batches(batch_size)))
    base = training_step(build_method("no-xstar", {}, task.network(), task), batch)
    plain = _inference(task.network(), batch)
    plain_onnx = _onnx_inference(task.network(), batch, threads) if onnx else None
    with tempfile.TemporaryDirectory() as folder:
        supply = _supply(Path(folder), batch_size)
        yield time_in_turns("input", "a batch", supply, "no-xstar", base, rounds)
    for name in names:
        method = build_method(name, {}, task.network(), task)
        seen = append_xstar(batch) if method.sees_xstar_at_test else batch
        step = training_step(method, seen)
        yield time_in_turns("training step", name, step, "no-xstar", base, rounds)
        infer = _inference(method.student(), seen)
        yield time_in_turns("student's inference", name, infer, "plain network", plain, 4 * rounds)
        if plain_onnx is not None and not method.sees_xstar_at_test:
            infer = _onnx_inference(method.student(), batch, threads)
            yield time_in_turns("as ONNX", name, infer, "plain network", plain_onnx, 4 * rounds)


def _random_images(n: int) -> Task:
    rng = np.random.default_rng(0)
    side = IMAGE_SIZE
    images = Images(
        rng.integers(0, 256, (n, 3, side, side), dtype=np.uint8),
        rng.integers(0, N_CLASSES, n),
        _random_boxes(n, side, rng),
    )
    network = ImageNetworkSettings(name=NETWORK, dropout=0.5)
    return task_of_images(images, N_CLASSES, network).for_run(n, 0)


def _random_boxes(n: int, side: int, rng: np.random.Generator) -> NDArray[np.int64]:
    start = rng.integers(0, side // 2, (n, 2))
    return np.concatenate([start, start + side // 2], axis=1)


def _supply(folder: Path, batch_size: int) -> Callable[[], None]:
    """Return a function that makes batches as in training: memory-mapped, shuffled, cropped."""
    rng = np.random.default_rng(0)
    shape = (N_STORED, 3, STORED_SIZE, STORED_SIZE)
    x = open_memmap(folder / "x.npy", mode="w+", dtype=np.uint8, shape=shape)
    x[:] = rng.integers(0, 256, shape, dtype=np.uint8)
    rows = np.arange(N_STORED)
    images = Images(x, rows % N_CLASSES, _random_boxes(N_STORED, STORED_SIZE, rng))
    regions, has = images.regions(rows, "real", seed=0)
    cropping = Cropping(STORED_SIZE, IMAGE_SIZE, flip=True)
    split = ImageSplit(x, rows, ImageBatches(images.y, cropping, regions, has))
    order = torch.Generator().manual_seed(0)
    batches = chain.from_iterable(
        split.batches(batch_size, shuffle=order) for split in repeat(split)
    )

    def supply() -> None:
        next(batches)

    return supply


def _inference(net: torch.nn.Module, batch: Batch) -> Callable[[], None]:
    net.eval()

    def infer() -> None:
        with torch.inference_mode():
            net(batch.x)

    return infer


def _onnx_inference(net: torch.nn.Module, batch: Batch, threads: int) -> Callable[[], None]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "student.onnx"
        write_onnx(net, batch.x, path, {})
        exported = OnnxNetwork(path, threads)

    def infer() -> None:
        exported(batch.x)

    return infer


def main() -> None:
    """Measure what the command line asks for."""
    parser = Timing(__doc__, "methods to measure; by default all")
    parser.add_argument("--onnx", action="store_true", help="also time the exported student")
    given = parser.parse_args()
    known = [name for name, cls in methods().items() if "region" in cls.kinds]
    rows = measure(
        given.methods or known, given.rounds, given.batch_size, given.threads, given.onnx
    )
    print_rows(rows, given.json)


if __name__ == "__main__":
    main()
