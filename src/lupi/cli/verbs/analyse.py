"""`lupi analyse`: what the noise or the attention of a trained run learned from x*."""

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from lupi.cli.options import Allow, Json
from lupi.cli.output import print_json
from lupi.interface.console import PlainConsole, print_message, stderr


def analyse(
    run: Annotated[
        Path, typer.Argument(help="Folder of a finished run, or a folder with a single run.")
    ],
    rows: Annotated[int, typer.Option(min=20, help="Maximum number of validation rows.")] = 4000,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the page. By default RUN/analysis.")
    ] = None,
    allow: Allow = None,
    as_json: Json = False,
) -> None:
    """Show what the noise or the attention of a trained run learned from x*.

    It shows the variance per unit for correct and wrong predictions, a heat map of rows x units,
    maps of the noise over images or texts, correlations (with loss, error, region size), and
    whether the noise collapsed. The x* of validation rows is used only here, after training and
    selection. Writes `analysis.html`, `analysis.json` and the figures; --json prints the JSON.
    For a student with attention, it shows test rows with their attention and how often it points
    inside x*.

    Example: `lupi train mine.yaml --arm het-dropout --out runs/noise`, then
    `lupi analyse runs/noise`
    """
    from lupi.analysis.findings import find
    from lupi.analysis.observe import observe
    from lupi.records import HELPERS, find_run
    from lupi.report.sheets.analysis import (
        RELATION_HEAD,
        lead,
        relation_rows,
        text_lines,
        write_analysis,
    )
    from lupi.report.sheets.attention import attention_section, find_attention, write_attention

    run = find_run(run)
    attention = find_attention(run)
    if attention is not None and not (run / HELPERS).exists():  # no noise that x* sets
        page = write_attention(out or run / "analysis", run, attention)
        if as_json:
            print_json(attention.to_json())
        else:
            for text in attention.lead():
                PlainConsole().print(Text(text))
        print_message(f"page: {page}")
        return
    with Progress(console=stderr, transient=True, disable=not stderr.is_terminal) as progress:
        bar = progress.add_task("analysing rows")
        seen = observe(
            run, rows, lambda done, total: progress.update(bar, completed=done, total=total)
        )
    found = find(seen)
    looked = None if attention is None else attention_section(run)
    page = write_analysis(out or run / "analysis", run.name, found, seen, looked)
    if as_json:
        print_json(found.to_json())
    else:
        console = PlainConsole()
        for text in [*lead(found), *([] if attention is None else attention.lead()[:1])]:
            console.print(Text(text))
        for site in found.sites:
            console.print()
            for text in text_lines(site):
                console.print(Text(text))
            if relations := relation_rows(site):
                table = Table(*RELATION_HEAD, box=None, pad_edge=False)
                for row in relations:
                    table.add_row(*row)
                console.print(table)
    print_message(f"page: {page}")
