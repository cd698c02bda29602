"""`lupi bench`: what the methods cost, as ratios measured in one process."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from lupi.cli.output import Json, print_json, say


def bench(
    rounds: Annotated[int, typer.Option(min=2, help="Interleaved measurements of each.")] = 8,
    batch_size: Annotated[int, typer.Option(min=1)] = 32,
    threads: Annotated[int, typer.Option(min=1, help="Of torch.")] = 1,
    as_json: Json = False,
) -> None:
    """Measure a training step of each method on a VGG-16-BN at 64x64, against no-xstar's.

    Also the student's inference, the method detached, against a plain network's, and how many
    pictures one process supplies (from a cache, augmented) against what no-xstar consumes.
    Everything alternates in one process, so a noisy machine disturbs all alike: trust the ratios
    only.
    """
    from lupi.bench import measure

    say("measuring: about a minute")
    result = measure(rounds, batch_size, threads)
    if as_json:
        print_json(result)
        return
    for what in ("training_step", "student_inference"):
        rows = result[what]
        table = Table(box=None, pad_edge=False, title=what.replace("_", " "), title_justify="left")
        table.add_column("method", min_width=18)
        table.add_column(f"times {rows[0]['over']}", justify="right")
        table.add_column("seconds", justify="right")
        for row in rows:
            table.add_row(row["name"], f"{row['ratio']:.2f}", f"{row['seconds']:.4f}")
        Console().print(table)
    rates = result["input"]
    print(
        f"input: {rates['supplied_per_second']:.0f} pictures/s supplied, "
        f"{rates['consumed_per_second']:.1f} consumed: {rates['ratio']:.0f} times as many"
    )
