"""Compute the tables of docs/sizing.md from measured.json, the paper's files and published figures.

    python examples/sizing/tables.py

Change an assumption here, run it, and put what it prints into the page.
"""

import heapq
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from measure import kind, paper_files

from lupi.comparison.settings import ArmSettings, ComparisonSettings
from lupi.settings import merge
from lupi.train.settings import TrainSettings


class Gpu(NamedTuple):
    """Published figures of a GPU, and what an hour of it costs."""

    flops: float
    """A second, TF32 on tensor cores, without sparsity."""
    link: float
    """Bytes a second to the other GPUs of its machine, one way."""
    dollars: float


GPUS = {"A100": Gpu(156e12, 300e9, 2.0), "H100": Gpu(494.7e12, 450e9, 3.0)}
UTILISATION = 0.3
NETWORK = 25e9
"""Bytes a second of each GPU to other machines."""
N_VAL = N_TEST = 50_000
N_REESTIMATED = 2048
FLOAT = 4
IMAGE_BYTES = 147_897_477_120 / 1_281_167
"""The archive of ILSVRC 2012's training images, and their number."""
SEEDS = (1, 8)

MEASURED = json.loads(Path(__file__).with_name("measured.json").read_text())


class Run(NamedTuple):
    """A training at the paper's scale."""

    size: int
    flops: float


def variants(settings: ComparisonSettings, key: str) -> int:
    """Count the arms that one stands for: fractions of x*, and controls of those with any."""
    return sum(named.key == key for named in settings.named_arms())


def training(settings: ComparisonSettings, arm: ArmSettings, size: int) -> TrainSettings:
    """Return how an arm is trained at a size."""
    by_size = merge(settings.train, settings.train_by_size.get(size, {}))
    return TrainSettings.parse(merge(by_size, arm.train), "train")


def runs(settings: ComparisonSettings, n_seeds: int) -> Iterator[Run]:
    """Yield the runs of a file, each with as many epochs as it may have at most."""
    crops = 11 if getattr(settings.task, "test_crops", None) == "ten" else 1
    for key, arm in settings.arms.items():
        cost = MEASURED["kinds"][kind(arm, merge(settings.network, arm.network))]
        for size in settings.sizes:
            flops = crops * N_TEST * cost["inference_flops"]
            for stage in cost["stages"]:
                epochs = stage["epochs"] or training(settings, arm, size).epochs
                looked_at = (N_VAL + N_REESTIMATED) * cost["inference_flops"]
                flops += epochs * (size * stage["flops"] + looked_at)
            yield from [Run(size, flops)] * (variants(settings, key) * n_seeds)


def hours(flops: float, gpu: Gpu) -> float:
    """Return how long a GPU computes."""
    return flops / (gpu.flops * UTILISATION) / 3600


def makespan(durations: Sequence[float], n: int) -> float:
    """Return when the last run ends if n GPUs take one run after another, the longest first."""
    free = [0.0] * n
    for duration in sorted(durations, reverse=True):
        heapq.heapreplace(free, free[0] + duration)
    return max(free)


def table(head: Sequence[str], rows: Iterator[Sequence[Any]]) -> str:
    """Write a table in Markdown."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def steps() -> Iterator[Sequence[Any]]:
    """Compare the arms of the table of baselines: a step, and the memory it takes."""
    settings = dict(paper_files())["paper/baselines-75k"]
    base = MEASURED["kinds"]["no-xstar"]["stages"][0]["flops"]
    for name, arm in settings.arms.items():
        cost = MEASURED["kinds"][kind(arm, merge(settings.network, arm.network))]
        train = training(settings, arm, 75_000)
        copies = 2 + (1 if train.optimizer == "sgd" else 2)  # weights, gradients, optimizer
        fixed = copies * FLOAT * cost["n_weights"]
        flops = cost["stages"][0]["flops"]
        yield (
            f"`{name}`",
            f"{flops / 1e9:.0f}",
            f"{flops / base:.2f}",
            f"{cost['cpu_seconds'] / cost['cpu_seconds_of_no_xstar']:.2f}",
            f"{cost['n_weights'] / 1e6:.0f} M",
            f"{cost['saved_bytes'] / 1e6:.0f} MB",
            train.batch_size,
            f"{(fixed + train.batch_size * cost['saved_bytes']) / 1e9:.0f} GB",
        )


def files() -> Iterator[tuple[str, int, list[Run]]]:
    """Yield the runs of each file, and of all together, with one seed and with more."""
    for n_seeds in SEEDS:
        every: list[Run] = []
        for name, settings in paper_files():
            its = list(runs(settings, n_seeds))
            every += its
            yield f"`{name}`", n_seeds, its
        yield "all", n_seeds, every


def totals() -> Iterator[Sequence[Any]]:
    """Add up the runs of each file."""
    for name, n_seeds, every in files():
        flops = sum(run.flops for run in every)
        row = [name, n_seeds, len(every), f"{flops / 1e18:,.0f}"]
        for gpu in GPUS.values():
            used = hours(flops, gpu)
            row += [f"{used:,.0f}", f"{used * gpu.dollars:,.0f}"]
        yield row


def walls() -> Iterator[Sequence[Any]]:
    """Spread the runs of each file over GPUs, one run on each at a time."""
    for name, n_seeds, every in files():
        row: list[Any] = [name, n_seeds]
        for gpu in GPUS.values():
            durations = [hours(run.flops, gpu) / 24 for run in every]
            row += [f"{makespan(durations, n):,.1f}" for n in (1, 8, 64)]
        yield row


def one_training() -> Iterator[Sequence[Any]]:
    """Spread one training of het-dropout over GPUs, the batch divided among them."""
    cost = MEASURED["kinds"]["het-dropout"]
    for name, gpu in GPUS.items():
        for batch in (256, 2048):
            alone = 0.0
            for n in (1, 8, 64):
                computing = cost["stages"][0]["flops"] * batch / n / (gpu.flops * UTILISATION)
                slowest = gpu.link if n <= 8 else NETWORK
                exchanged = 2 * (n - 1) / n * FLOAT * cost["n_weights"] / slowest
                alone = alone or computing
                faster = alone / (computing + exchanged)
                milliseconds = (f"{1000 * t:,.0f}" for t in (computing, exchanged))
                yield name, batch, n, *milliseconds, f"{faster:.1f}", f"{faster / n:.0%}"


def inputs() -> Iterator[Sequence[Any]]:
    """Say what the input side has to supply to a GPU that trains no-xstar, the hungriest."""
    for name, gpu in GPUS.items():
        flops = MEASURED["kinds"]["no-xstar"]["stages"][0]["flops"]
        rate = gpu.flops * UTILISATION / flops
        cores = rate / MEASURED["decoding"]["per_cpu_second"]
        yield name, f"{rate:,.0f}", f"{rate * IMAGE_BYTES / 1e6:,.0f} MB/s", f"{cores:.1f}"


def storage() -> Iterator[Sequence[Any]]:
    """Say how much space images take."""
    for what, n in (("75 per class, validation, test", 175_000), ("all of train", 1_281_167)):
        shards, cache = n * IMAGE_BYTES, n * 3 * 256 * 256
        yield what, f"{n:,}", f"{shards / 1e9:,.0f} GB", f"{cache / 1e9:,.0f} GB"


def document() -> str:
    """Return all tables."""
    per_gpu = [f"{name} {what}" for name in GPUS for what in ("hours", "$")]
    days = [f"{name} x {n}" for name in GPUS for n in (1, 8, 64)]
    step = ("arm", "GFLOP an image", "ratio", "measured", "weights", "kept", "batch", "memory")
    one = ("GPU", "batch", "GPUs", "computing, ms", "exchange, ms", "faster", "efficiency")
    tables = (
        table(step, steps()),
        table(("file", "seeds", "runs", "EFLOP", *per_gpu), totals()),
        table(("days of", "seeds", *days), walls()),
        table(one, one_training()),
        table(("GPU", "images a second", "from storage", "cores that decode"), inputs()),
        table(("images", "number", "shards", "cache at 256 x 256"), storage()),
    )
    return "\n\n".join(tables)


if __name__ == "__main__":
    print(document())
