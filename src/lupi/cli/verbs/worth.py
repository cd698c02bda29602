"""`lupi worth`: what x* is worth in labels, and what to buy for a budget."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from lupi.cli.options import Json
from lupi.cli.output import print_json
from lupi.errors import LupiError
from lupi.interface.console import PlainConsole


def worth(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder of a comparison with --xstar-fracs.")
    ],
    arm: Annotated[
        str | None, typer.Option(help="Arm with x*, if several have several fractions.")
    ] = None,
    budget: Annotated[
        float | None, typer.Option(help="What you can spend, in the unit of the costs.")
    ] = None,
    label_cost: Annotated[float, typer.Option(help="Cost of labelling one row.")] = 1.0,
    xstar_cost: Annotated[
        float, typer.Option(help="Cost of annotating one labelled row with x*.")
    ] = 1.0,
    as_json: Json = False,
) -> None:
    """Say how many labels one x* is worth, and which mix of labels and x* to buy.

    It needs a finished comparison with several sizes and several fractions of rows with x*:

    Example: `lupi compare reviews.csv --text review --target label --rationale spans
    --xstar-fracs 0.1,0.25,0.5,1`

    It then fits a surface of the score over labels and x*, shows how well it fits, and answers up
    to twice the largest measured size.

    Example: `lupi worth runs/reviews --label-cost 1 --xstar-cost 0.5 --budget 300`
    """
    from lupi.interface.result import Comparison
    from lupi.report.worth import mix_sentences, point_rows, worth_sentences

    if budget is None and (label_cost, xstar_cost) != (1.0, 1.0):
        raise LupiError("--label-cost and --xstar-cost need a --budget")
    surface = Comparison(folder).worth(arm)
    mix = None if budget is None else surface.best_mix(budget, label_cost, xstar_cost)
    if as_json:
        print_json(
            {
                "arm": surface.arm,
                "plain": surface.plain,
                "fits": surface.fits,
                "p_fit": surface.p_fit,
                "helps": surface.helps,
                "labels_per_xstar": surface.worth(surface.largest_n)._asdict(),
                "mix": None if mix is None else mix.to_dict(),
            }
        )
        return
    from rich import box
    from rich.table import Table

    console = PlainConsole(highlight=False)
    table = Table("labels", "with x*", "measured", "fitted", box=box.SIMPLE_HEAD, show_edge=False)
    for row in point_rows(surface):
        table.add_row(*row)
    console.print(table)
    console.print()
    for sentence in worth_sentences(surface):
        console.print(escape(sentence))
    for sentence in mix_sentences(surface, mix, budget) if mix and budget else ():
        console.print(escape(sentence))
