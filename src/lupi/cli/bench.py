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

    Also the student's inference against a plain network's. Everything alternates in one
    process, and the ratio is that of the medians, so a noisy machine disturbs both alike.
    """
    from lupi.bench import measure

    say("measuring: about a minute")
    result = measure(rounds, batch_size, threads)
    if as_json:
        print_json(result)
        return
    table = Table(box=None, pad_edge=False)
    for column in ("what", "ratio", "seconds"):
        table.add_column(column, justify="left" if column == "what" else "right")
    for entry in result["ratios"]:
        table.add_row(entry["name"], f"{entry['ratio']:.2f}", f"{entry['seconds']:.4f}")
    Console().print(table)
