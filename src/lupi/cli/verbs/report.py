"""`lupi report`: judge the records of a comparison."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from lupi.cli.options import Json
from lupi.cli.output import print_json, print_text, print_verdict
from lupi.errors import LupiError
from lupi.interface.console import print_message


def report(
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="Folder of a comparison, such as runs/demo."),
    ],
    as_json: Json = False,
    format_: Annotated[
        Literal["markdown", "latex", "csv"] | None,
        typer.Option("--format", help="Print a table in this format instead."),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(help="Also write figures for papers (SVG, PDF, PNG) to this folder."),
    ] = None,
) -> None:
    """Print the verdict of a comparison and write its page, `report.html`.

    It also works while the comparison is running, and lists missing runs. --json prints the mean,
    interval, verdict, p-value, label-saving factor, and the counts of collapsed and diverged runs
    for each arm and size.

    A folder that holds comparisons, such as runs, lists them.

    Example: `lupi report runs/demo --format latex --figures paper/`
    """
    from lupi.interface.result import Comparison
    from lupi.report.figures.static import write_figures

    if not (folder / "comparison.json").exists() and (found := _inside(folder)):
        _list(found, as_json)
        return
    comparison = Comparison(folder)
    page = comparison.report()
    print_verdict(comparison, as_json, format_)
    print_message(f"report: {page}")
    for path in write_figures(comparison.summary, figures) if figures else ():
        print_message(f"figure: {path}")


def _inside(folder: Path) -> list[Path]:
    """Return the comparisons right inside a folder, the latest first."""
    if not folder.is_dir():
        return []
    found = [path.parent for path in folder.glob("*/comparison.json")]
    return sorted(found, key=lambda path: -(path / "comparison.json").stat().st_mtime)


def _list(folders: list[Path], as_json: bool) -> None:
    """Print the comparisons in a folder: name, verdict and runs."""
    from lupi.interface.result import Comparison

    rows = []
    for folder in folders:
        try:
            one = Comparison(folder)
            runs = f"{len(one.record.finished)} of {len(one.record.runs)} runs"
            rows.append({"folder": str(folder), "verdict": one.verdict, "runs": runs})
        except LupiError as error:
            rows.append({"folder": str(folder), "verdict": f"can't be read: {error}", "runs": ""})
    if as_json:
        print_json({"comparisons": rows})
        return
    width = max(len(row["folder"]) for row in rows)
    for row in rows:
        print_text(f"{row['folder']:{width}}  {row['verdict']} ({row['runs']})")
    print_message("one of them: lupi report FOLDER")
