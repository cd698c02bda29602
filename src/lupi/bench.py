"""What methods cost: ratios of times, measured in turns in one process.

Machines are noisy, so contestant and base alternate, now one first, now the other, and a ratio is
the median of the ratios of the rounds.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, repeat
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from lupi.core import Batch, Method
from lupi.data.images.parts import fixed_parts
from lupi.data.images.split import ImageBatches, Images, ImageSplit
from lupi.data.images.windows import Cropping
from lupi.data.xstar.reveal import append_xstar
from lupi.methods.registry import build_method
from lupi.records import Design
from lupi.ship.onnx_file import OnnxNetwork, write_onnx
from lupi.tasks.images.image import ImageNetworkSettings, ImageTask
from lupi.tasks.translation.settings import TranslationNetworkSettings, TranslationSettings
from lupi.tasks.translation.task import TranslationTask
from lupi.tasks.translation.translator import Translator
from lupi.train.losses import reduce

NETWORK = "vgg16-bn"
IMAGE_SIZE = 64
N_CLASSES = 100
N_WARM_UP = 2
N_STORED = 4096
STORED_SIZE = 72
N_UNITS = 256
N_LINES = 2000
N_SEARCHED = 16
WORDS_PER_LANGUAGE = 8000
XSTAR_DIMS = 128

Row = dict[str, Any]
"""what was timed, of which method, over what, the ratio, and the seconds of both; of sentences
also how many tokens or sentences a second"""


def measure(
    names: Sequence[str], rounds: int, batch_size: int, threads: int, onnx: bool = False
) -> Iterator[Row]:
    """Time the input side, then each method's training step and its student's inference.

    A method is timed in turns with `no-xstar`, its student with a plain network (with `onnx`, as
    exported, too), and then let go: no more than two networks in training are in memory at a time.
    """
    torch.set_num_threads(threads)
    task = _random_images(batch_size)
    batch = next(iter(task.splits(batch_size, seed=0).train.batches(batch_size)))
    base = _training_step(build_method("no-xstar", {}, task.network(), task), batch)
    plain = _inference(task.network(), batch)
    plain_onnx = _onnx_inference(task.network(), batch, threads) if onnx else None
    with tempfile.TemporaryDirectory() as folder:
        supply = _supply(Path(folder), batch_size)
        yield _row("input", "a batch", supply, "no-xstar", base, rounds)
    for name in names:
        method = build_method(name, {}, task.network(), task)
        seen = append_xstar(batch) if method.sees_xstar_at_test else batch
        step = _training_step(method, seen)
        yield _row("training step", name, step, "no-xstar", base, rounds)
        infer = _inference(method.student(), seen)
        yield _row("student's inference", name, infer, "plain network", plain, 4 * rounds)
        if plain_onnx is not None and not method.sees_xstar_at_test:
            infer = _onnx_inference(method.student(), batch, threads)
            yield _row("as ONNX", name, infer, "plain network", plain_onnx, 4 * rounds)


def measure_translation(
    names: Sequence[str], rounds: int, batch_size: int, threads: int
) -> Iterator[Row]:
    """Time each method's training step on sentences and its student's beam search.

    Noise is at the sites between layers, as in the paper. The base of both is `no-xstar`.
    """
    torch.set_num_threads(threads)
    with tempfile.TemporaryDirectory() as folder:
        task = _random_sentences(Path(folder))
    order = torch.Generator().manual_seed(0)
    batch = next(iter(task.splits(N_LINES, seed=0).train.batches(batch_size, shuffle=order)))
    n_tokens = int((batch.y != 0).sum())
    plain = build_method("no-xstar", {}, task.network(), task)
    base, search = _training_step(plain, batch), _search(plain.student(), task)
    for name in names:
        settings = {"sites": ["*.between.*"]} if name.endswith("-dropout") else {}
        method = build_method(name, settings, task.network(), task)
        seen = append_xstar(batch) if method.sees_xstar_at_test else batch
        row = _row("training step", name, _training_step(method, seen), "no-xstar", base, rounds)
        yield {**row, "unit": "tokens", "per_second": n_tokens / row["seconds"]}
        if method.sees_xstar_at_test:
            continue
        found = _search(method.student(), task)
        row = _row("beam search", name, found, "no-xstar", search, max(2, rounds // 3))
        yield {**row, "unit": "sentences", "per_second": N_SEARCHED / row["seconds"]}


def _random_sentences(folder: Path) -> TranslationTask:
    """Sentences of 4 to 22 words, some words much more frequent than others; x* of noise."""
    rng = np.random.default_rng(0)
    for part, n in (("train", N_LINES), ("val", 2), ("test", 2)):
        for language in ("en", "de"):
            ranks = [rng.zipf(1.3, rng.integers(4, 23)) % WORDS_PER_LANGUAGE for _ in range(n)]
            lines = [" ".join(f"{language}{rank}" for rank in line) for line in ranks]
            (folder / f"{part}.{language}").write_text("\n".join(lines) + "\n")
    np.save(folder / "xstar.npy", rng.normal(size=(N_LINES, XSTAR_DIMS)).astype(np.float32))
    settings = TranslationSettings(
        root=folder, source="en", target="de", xstar=str(folder / "xstar.npy"), min_count=1
    )
    task = TranslationTask(settings, TranslationNetworkSettings(n_units=N_UNITS))
    return task.for_run(N_LINES, seed=0)


def _search(net: torch.nn.Module, task: TranslationTask) -> Callable[[], None]:
    translator = Translator(net, task.source, task.target)
    lines = task.lines("train")[:N_SEARCHED]

    def search() -> None:
        translator.translate(lines)

    return search


def _random_images(n: int) -> ImageTask:
    rng = np.random.default_rng(0)
    side = IMAGE_SIZE
    images = Images(
        rng.integers(0, 256, (n, 3, side, side), dtype=np.uint8),
        rng.integers(0, N_CLASSES, n),
        _random_boxes(n, side, rng),
    )
    network = ImageNetworkSettings(name=NETWORK, dropout=0.5)
    design = Design(n_pool=n, test="fixed", n_test=n)
    return ImageTask(fixed_parts(images, images, images), design, N_CLASSES, network)


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


def _training_step(method: Method, batch: Batch) -> Callable[[], None]:
    optimizer = torch.optim.Adam(method.parameters(), 1e-3)
    method.train()

    def step() -> None:
        optimizer.zero_grad()
        reduce(method(batch), batch).total.backward()
        optimizer.step()

    return step


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


def _row(
    what: str,
    name: str,
    contestant: Callable[[], None],
    over: str,
    base: Callable[[], None],
    rounds: int,
) -> Row:
    """Time two in turns, and return the median of the ratios and the median seconds."""
    pair = (contestant, base)
    for _ in range(N_WARM_UP):
        contestant()
        base()
    seconds: tuple[list[float], list[float]] = ([], [])
    for turn in range(rounds):
        for i in (turn % 2, 1 - turn % 2):
            started = time.perf_counter()
            pair[i]()
            seconds[i].append(time.perf_counter() - started)
    ratio = median(a / b for a, b in zip(*seconds, strict=True))
    return {
        "what": what,
        "name": name,
        "over": over,
        "ratio": ratio,
        "seconds": median(seconds[0]),
        "seconds_over": median(seconds[1]),
    }
