"""Compute the tables of docs/sizing.md from measured.json, the paper's files and published figures.

    python examples/sizing/tables.py

Change an assumption here, run it, and put what it prints into the page.
"""

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
    dollars: float


GPUS = {"A100": Gpu(156e12, 2.0), "H100": Gpu(494.7e12, 3.0)}
UTILISATION = 0.3
N_VAL = N_TEST = 50_000
N_REESTIMATED = 2048
FLOAT = 4
IMAGE_BYTES = 147_897_477_120 / 1_281_167
"""The archive of ILSVRC 2012's training images, and their number."""

MEASURED = json.loads(Path(__file__).with_name("measured.json").read_text())


def variants(settings: ComparisonSettings, key: str) -> int:
    """Count the arms that one stands for: fractions of x*, and controls of those with any."""
    return sum(named.key == key for named in settings.named_arms())


def training(settings: ComparisonSettings, arm: ArmSettings, size: int) -> TrainSettings:
    """Return how an arm is trained at a size."""
    by_size = merge(settings.train, settings.train_by_size.get(size, {}))
    return TrainSettings.parse(merge(by_size, arm.train), "train")


def runs(settings: ComparisonSettings) -> Iterator[float]:
    """Yield the operations of a file's runs of one seed, with as many epochs as they may have."""
    crops = 11 if getattr(settings.task, "test_crops", None) == "ten" else 1
    for key, arm in settings.arms.items():
        cost = MEASURED["kinds"][kind(arm, merge(settings.network, arm.network))]
        for size in settings.sizes:
            flops = crops * N_TEST * cost["inference_flops"]
            for stage in cost["stages"]:
                epochs = stage["epochs"] or training(settings, arm, size).epochs
                looked_at = (N_VAL + N_REESTIMATED) * cost["inference_flops"]
                flops += epochs * (size * stage["flops"] + looked_at)
            yield from [flops] * variants(settings, key)


def hours(flops: float, gpu: Gpu) -> float:
    """Return how long a GPU computes."""
    return flops / (gpu.flops * UTILISATION) / 3600


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


def totals() -> Iterator[Sequence[Any]]:
    """Add up the runs of each file, and of all together."""
    every = {f"`{name}`": list(runs(settings)) for name, settings in paper_files()}
    every["all"] = [run for some in every.values() for run in some]
    for name, some in every.items():
        row = [name, len(some), f"{sum(some) / 1e18:,.0f}"]
        for gpu in GPUS.values():
            used = hours(sum(some), gpu)
            row += [f"{used:,.0f}", f"{used * gpu.dollars:,.0f}", f"{hours(max(some), gpu):,.0f}"]
        yield row


def inputs() -> Iterator[Sequence[Any]]:
    """Say what the input side has to supply to a GPU that trains no-xstar, the hungriest."""
    for name, gpu in GPUS.items():
        flops = MEASURED["kinds"]["no-xstar"]["stages"][0]["flops"]
        rate = gpu.flops * UTILISATION / flops
        cores = rate / MEASURED["decoding"]["per_cpu_second"]
        yield name, f"{rate:,.0f}", f"{rate * IMAGE_BYTES / 1e6:,.0f} MB/s", f"{cores:.1f}"


def document() -> str:
    """Return all tables."""
    per_gpu = [f"{name} {what}" for name in GPUS for what in ("hours", "$", "longest run, h")]
    step = ("arm", "GFLOP an image", "ratio", "measured", "weights", "kept", "batch", "memory")
    tables = (
        table(step, steps()),
        table(("file", "runs", "EFLOP", *per_gpu), totals()),
        table(("GPU", "images a second", "from storage", "cores that decode"), inputs()),
    )
    return "\n\n".join(tables)


if __name__ == "__main__":
    print(document())
