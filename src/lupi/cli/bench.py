"""`lupi bench`: what the methods cost, as ratios measured in one process."""

from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from lupi.cli.output import Json, print_json, stderr


def bench(
    methods: Annotated[
        list[str] | None, typer.Argument(help="Which methods. By default all of them.")
    ] = None,
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

    Example: `lupi bench het-dropout` takes about two minutes on one core.
    """
    from lupi.bench import IMAGE_SIZE, NETWORK, measure
    from lupi.methods.registry import find_method
    from lupi.methods.registry import methods as all_methods

    names = [find_method(name).name for name in methods] if methods else list(all_methods())
    measured = measure(names, rounds, batch_size, threads, onnx)
    total = 1 + (3 if onnx else 2) * len(names)
    rows = list(track(measured, "measuring", total=total, console=stderr))
    if as_json:
        print_json(
            {
                "network": NETWORK,
                "image_size": IMAGE_SIZE,
                "batch_size": batch_size,
                "threads": threads,
                "rounds": rounds,
                "ratios": rows,
            }
        )
        return
    table = Table(box=None, pad_edge=False)
    for column in ("what", "of", "ratio", "to", "seconds"):
        table.add_column(column, justify="right" if column in ("ratio", "seconds") else "left")
    for row in sorted(rows, key=lambda row: str(row["what"])):
        seconds = f"{row['seconds']:.4f} / {row['seconds_over']:.4f}"
        table.add_row(row["what"], row["name"], f"{row['ratio']:.2f}", row["over"], seconds)
    Console().print(table)
