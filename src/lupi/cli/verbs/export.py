"""`lupi export`: write the student of a run to a folder."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from lupi.cli.options import Allow, Json
from lupi.cli.output import print_json, print_text
from lupi.interface.console import print_message, stderr


def export(
    run: Annotated[
        Path, typer.Argument(help="Folder of a finished run, or of a comparison to choose from.")
    ],
    out: Annotated[Path, typer.Option(help="Folder to write; it must not exist yet.")],
    format_: Annotated[
        Literal["torch", "onnx"],
        typer.Option("--format", help="Weights for torch, or a graph (the extra lupi[onnx])."),
    ] = "torch",
    arm: Annotated[
        str | None, typer.Option(help="Arm of a comparison. By default the best one.")
    ] = None,
    size: Annotated[
        int | None, typer.Option(help="Size of a comparison. By default the largest.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of a comparison. By default the best.")
    ] = None,
    allow: Allow = None,
    as_json: Json = False,
) -> None:
    """Write the student of a run to a folder, without data, method or x*.

    From a comparison, the best run on validation rows is chosen: first the arm, by its mean over
    seeds, then the seed. The outputs are compared with the original's on test rows; if they
    differ by more than 1e-4, nothing is written. MODEL_CARD.md contains the evidence.
    `lupi predict` and `lupi.load_student` read the folder.

    Example: `lupi export runs/demo --arm het-dropout --format onnx --out shipped`
    """
    from lupi.ship.export import export as write
    from lupi.ship.pick import pick_run

    picked = pick_run(run, arm, size, seed)
    print_message(picked.why)
    if picked.headline is not None:
        print_message(f"did x* help? {picked.headline}")
    with stderr.status("exporting"):
        exported = write(picked.folder, out, format_)
    if as_json:
        print_json(
            {
                "folder": str(exported.folder),
                "run": str(picked.folder),
                "format": format_,
                "verdict": picked.verdict,
                "headline": picked.headline,
                "n_rows_compared": exported.n_rows,
                "largest_difference": exported.difference,
            }
        )
        return
    print_text(
        f"{out}: outputs on {exported.n_rows} test rows differ from the original's by "
        f"at most {exported.difference:.2g}"
    )
