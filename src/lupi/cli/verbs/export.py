"""`lupi export`: write the student of a run to a folder."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from lupi.cli.options import Allow, Json
from lupi.cli.output import print_json, print_text
from lupi.errors import LupiError
from lupi.interface.console import print_message, progress_bar, stderr


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
    refit: Annotated[
        bool,
        typer.Option(
            "--refit", help="Train the arm on all labels first, with the comparison's settings."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Write the student of a run to a folder, without data, method or x*.

    From a comparison, the best run on validation rows is chosen: first the arm, by its mean over
    seeds, then the seed. The outputs are compared with the original's on test rows; if they
    differ by more than 1e-4, nothing is written. MODEL_CARD.md contains the evidence.
    `lupi predict` and `lupi.load_student` read the folder.

    With --refit, the arm is trained once more on all labels, those of test rows included, and that
    student is written. The scores of the comparison, on fewer labels, say what to expect.

    Example: `lupi export runs/pupils --refit --out shipped`

    Example: `lupi export runs/demo --arm het-dropout --format onnx --out shipped`
    """
    from lupi.ship.export import export as write
    from lupi.ship.pick import Judged, pick_run

    refitted = None
    judged: Judged | None
    if refit:
        from lupi.ship.refit import refit as train_again

        if size is not None:
            raise LupiError("--size has no effect with --refit, which trains on all labels")
        with progress_bar("training on all labels") as show:
            refitted = train_again(
                run, arm, seed or 0, lambda row: show(int(row["epoch"]), int(row["epoch"]) + 1)
            )
        folder, judged = refitted.folder, refitted.judged
        print_message(f"{refitted.why}; {refitted.about}")
    else:
        folder, why, judged = pick_run(run, arm, size, seed)
        print_message(why)
    if judged is not None:
        print_message(f"did x* help? {judged.summary.headline}")
    with stderr.status("exporting"):
        exported = write(folder, out, format_, refitted)
    if as_json:
        print_json(
            {
                "folder": str(exported.folder),
                "run": str(folder),
                "n_labels": None if refitted is None else refitted.n_rows,
                "format": format_,
                "verdict": None if judged is None else judged.cell.verdict,
                "headline": None if judged is None else judged.summary.headline,
                "n_rows_compared": exported.n_rows,
                "largest_difference": exported.difference,
            }
        )
        return
    print_text(
        f"{out}: outputs on {exported.n_rows} test rows differ from the original's by "
        f"at most {exported.difference:.2g}"
    )
