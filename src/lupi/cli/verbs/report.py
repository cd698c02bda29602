"""`lupi report`: judge the records of a comparison."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from lupi.cli.options import Json
from lupi.cli.output import print_json, print_text, print_verdict
from lupi.errors import LupiError
from lupi.interface.console import print_message


def report(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR [OTHER]", help="Folder of a comparison, such as runs/demo; or two folders."
        ),
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
    watch: Annotated[
        bool,
        typer.Option("--watch", help="Serve the page on this machine until Ctrl-C."),
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port for --watch (0 picks a free one).")
    ] = 0,
) -> None:
    """Print the verdict of a comparison and write its page, `report.html`.

    It also works while the comparison is running, and lists missing runs. --json prints the mean,
    interval, verdict, p-value, label-saving factor, and the counts of collapsed and diverged runs
    for each arm and size. With two folders, it shows the common arms side by side, with paired
    differences if seeds and data are the same.

    A folder that holds comparisons, such as runs, lists them.

    Example: `lupi report runs/demo --format latex --figures paper/`
    """
    if len(folders) > 2:
        raise LupiError(f"lupi report takes one comparison or two, got {len(folders)}")
    if len(folders) == 2:
        if format_ or figures or watch:
            raise LupiError("--format, --figures and --watch are for one comparison, got two")
        _compare(folders[0], folders[1], as_json)
    elif watch:
        if format_ or figures or as_json:
            raise LupiError("--watch can't be combined with --format, --figures or --json")
        _serve(folders[0], port)
    else:
        _write(folders[0], as_json, format_, figures)


def _write(folder: Path, as_json: bool, table: str | None, figures: Path | None) -> None:
    from lupi.interface.result import Comparison
    from lupi.report.figures.static import write_figures

    if not (folder / "comparison.json").exists() and (found := _inside(folder)):
        _list(found, as_json)
        return
    comparison = Comparison(folder)
    page = comparison.report()
    print_verdict(comparison, as_json, table)
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


def _compare(first: Path, second: Path, as_json: bool) -> None:
    from lupi.interface.console import PlainConsole
    from lupi.records import read_comparison
    from lupi.report.terminal import render_pair
    from lupi.verdict.side_by_side import side_by_side

    found = side_by_side(read_comparison(first), read_comparison(second))
    if as_json:
        print_json(asdict(found))
    else:
        for part in render_pair(found):
            PlainConsole().print(part, highlight=False)


def _serve(folder: Path, port: int) -> None:
    from lupi.report.page.watch import HOST, page_server

    with page_server(folder, port) as server:
        print_message(f"report: http://{HOST}:{server.server_port}/ (Ctrl-C to stop)")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print_message("stopped; `lupi report` without --watch writes the page to a file")
