"""`lupi bench`: the cost of methods, as ratios measured in one process."""

from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress, track
from rich.table import Table

from lupi.cli.options import Json
from lupi.cli.output import print_json
from lupi.errors import LupiError
from lupi.interface.console import stderr


class _Task(StrEnum):
    images = "images"
    translation = "translation"


class _Rival(StrEnum):
    joeynmt = "joeynmt"


def bench(
    methods: Annotated[
        list[str] | None,
        typer.Argument(help="Methods to measure; by default all. Or `compare`."),
    ] = None,
    task: Annotated[_Task, typer.Option(help="Task to measure on.")] = _Task.images,
    against: Annotated[
        _Rival | None, typer.Option(help="Other software to time (translation only).")
    ] = None,
    rounds: Annotated[int, typer.Option(min=2, help="Number of measurements of each method.")] = 6,
    batch_size: Annotated[int, typer.Option(min=1, help="Rows per batch.")] = 32,
    threads: Annotated[int, typer.Option(min=1, help="Number of torch threads.")] = 1,
    onnx: Annotated[
        bool, typer.Option("--onnx", help="Also time the student exported to ONNX.")
    ] = False,
    workers: Annotated[
        int | None, typer.Option(min=2, help="Workers for `compare`. By default one per core.")
    ] = None,
    runs: Annotated[int, typer.Option(min=2, help="Runs per measurement of `compare`.")] = 16,
    as_json: Json = False,
) -> None:
    """Measure the cost of each method, as a ratio to that of no-xstar.

    On images, it times a training step of a VGG-16-BN at 64x64, the inference of the student
    compared with a plain network, and the preparation of a batch compared with the step that
    uses it. Both sides of a ratio alternate in one process, so a busy machine affects both: trust
    only the ratios.

    On translation, it times a training step of 2-layer LSTMs with 256 units, and beam search with
    12 hypotheses, also in tokens and sentences per second.

    Example: `lupi bench het-dropout` takes about two minutes on one core.

    With `--against joeynmt`, it times JoeyNMT instead, with the same sizes and sentences, with and
    without input feeding.

    `lupi bench compare` measures how a comparison uses several cores: the throughput of small
    runs with several workers compared with one, the start-up time and the memory of a worker.

    Example: `lupi bench compare --workers 2`
    """
    if methods == ["compare"]:
        _bench_compare(workers, runs, rounds, as_json)
        return
    from lupi.bench import images, translation
    from lupi.methods.registry import find_method
    from lupi.methods.registry import methods as all_methods

    known = {
        name: method
        for name, method in all_methods().items()
        if ("tokens" if task is _Task.translation else "classes") in method.output_kinds
        and (task is _Task.translation or "region" in method.kinds)
    }
    names = [find_method(name).name for name in methods] if methods else list(known)
    on_images = task is _Task.images
    if onnx and not on_images:
        raise LupiError("--onnx is for images: translation students can't be exported")
    if against and (on_images or methods):
        raise LupiError(
            "--against joeynmt times JoeyNMT against no-xstar on sentences: give "
            "--task translation and no methods"
        )
    if against:
        measured = translation.measure_joeynmt(rounds, batch_size, threads)
    elif on_images:
        measured = images.measure(names, rounds, batch_size, threads, onnx)
    else:
        measured = translation.measure(names, rounds, batch_size, threads)
    total = (1 if on_images else 0) + (3 if onnx else 2) * len(names)
    if against:
        total = translation.N_JOEYNMT_ROWS
    rows = list(track(measured, "measuring", total=total, console=stderr))
    about = (
        {"network": images.NETWORK, "image_size": images.IMAGE_SIZE}
        if on_images
        else {"network": "lstm", "n_units": translation.N_UNITS}
    )
    if as_json:
        print_json(
            {
                "task": task.value,
                **about,
                "batch_size": batch_size,
                "threads": threads,
                "rounds": rounds,
                "ratios": rows,
            }
        )
        return
    table = Table(box=None, pad_edge=False)
    numbers = ("ratio", "seconds", "a second")
    for column in ("what", "of", "ratio", "to", "seconds", *([] if on_images else ["a second"])):
        table.add_column(column, justify="right" if column in numbers else "left")
    for row in sorted(rows, key=lambda row: str(row["what"])):
        seconds = f"{row['seconds']:.4f} / {row['seconds_over']:.4f}"
        rate = [f"{row['per_second']:.0f} {row['unit']}"] if "unit" in row else []
        table.add_row(row["what"], row["name"], f"{row['ratio']:.2f}", row["over"], seconds, *rate)
    Console().print(table)


def _bench_compare(workers: int | None, n_runs: int, rounds: int, as_json: bool) -> None:
    from lupi.comparison.engines.local import n_cores
    from lupi.comparison.throughput import measure_throughput

    n_workers = workers or max(2, n_cores())
    with Progress(console=stderr, transient=True) as progress:
        total = 1 + n_workers + 2 * rounds * n_runs
        bar = progress.add_task("small runs", total=total)
        found = measure_throughput(n_workers, n_runs, rounds, lambda: progress.advance(bar))
    if as_json:
        print_json({"runs": n_runs, "rounds": rounds, **found})
        return
    table = Table(box=None, pad_edge=False)
    for column in ("workers", "runs per minute", "start-up", "memory of a worker"):
        table.add_column(column, justify="right")
    for row in found["workers"]:
        table.add_row(
            str(row["n"]),
            f"{row['runs_per_minute']:.1f}",
            f"{row['start_up_seconds']:.1f} s",
            f"{row['peak_memory_bytes'] / 1e9:.2f} GB",
        )
    Console().print(table)
    print(f"throughput of {n_workers} workers over one: {found['ratio']:.2f}")
