"""`lupi bench`: what the methods cost, as ratios measured in one process."""

from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from lupi.cli.output import Json, print_json, stderr
from lupi.errors import LupiError


class _Task(StrEnum):
    pictures = "pictures"
    translation = "translation"


def bench(
    methods: Annotated[
        list[str] | None, typer.Argument(help="Which methods. By default all of them.")
    ] = None,
    task: Annotated[_Task, typer.Option(help="What they are measured on.")] = _Task.pictures,
    rounds: Annotated[int, typer.Option(min=2, help="Measurements of each, in turns.")] = 6,
    batch_size: Annotated[int, typer.Option(min=1)] = 32,
    threads: Annotated[int, typer.Option(min=1, help="Of torch.")] = 1,
    onnx: Annotated[
        bool, typer.Option("--onnx", help="Time the student as exported to ONNX, too.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Measure a training step of each method on a VGG-16-BN at 64x64, against no-xstar's.

    Also the student's inference, the method detached, against a plain network's, and a batch of
    augmented pictures from a cache against the step that consumes it. Both sides of a ratio take
    turns in one process, so a noisy machine disturbs both alike: trust the ratios only.

    On translation: a training step of 2-layer LSTMs with 256 units, and beam search with 12
    hypotheses, also as tokens and sentences a second.

    Example: `lupi bench het-dropout` takes about two minutes on one core.
    """
    from lupi import bench as benchmarks
    from lupi.methods.registry import find_method
    from lupi.methods.registry import methods as all_methods

    known = {
        name: method
        for name, method in all_methods().items()
        if task is _Task.pictures or "tokens" in method.output_kinds
    }
    names = [find_method(name).name for name in methods] if methods else list(known)
    on_pictures = task is _Task.pictures
    if onnx and not on_pictures:
        raise LupiError("--onnx is for pictures: students of sentences are not exported")
    if on_pictures:
        measured = benchmarks.measure(names, rounds, batch_size, threads, onnx)
    else:
        measured = benchmarks.measure_translation(names, rounds, batch_size, threads)
    total = (1 if on_pictures else 0) + (3 if onnx else 2) * len(names)
    rows = list(track(measured, "measuring", total=total, console=stderr))
    about = (
        {"network": benchmarks.NETWORK, "image_size": benchmarks.IMAGE_SIZE}
        if on_pictures
        else {"network": "lstm", "n_units": benchmarks.N_UNITS}
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
    for column in ("what", "of", "ratio", "to", "seconds", *([] if on_pictures else ["a second"])):
        table.add_column(column, justify="right" if column in numbers else "left")
    for row in sorted(rows, key=lambda row: str(row["what"])):
        seconds = f"{row['seconds']:.4f} / {row['seconds_over']:.4f}"
        rate = [f"{row['per_second']:.0f} {row['unit']}"] if "unit" in row else []
        table.add_row(row["what"], row["name"], f"{row['ratio']:.2f}", row["over"], seconds, *rate)
    Console().print(table)
