"""`lupi demo`: a complete comparison on embedded data."""

from pathlib import Path
from typing import Annotated

import typer

from lupi.cli.engines import make_engine
from lupi.cli.options import Json, Quiet, Sets, Workers


def demo(
    set_: Sets = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the records.")] = None,
    workers: Workers = None,
    print_settings: Annotated[
        bool, typer.Option("--print-settings", help="Print the demo's YAML file and exit.")
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare heteroscedastic dropout with its controls on cluttered digits, in a few minutes.

    x is an image of a handwritten digit among fragments of others, x* the digit's bounding box,
    known only in training. Nothing is downloaded. Prints a verdict and writes
    `runs/demo/report.html`.
    """
    from lupi.cli.verbs.compare import compare_and_print
    from lupi.configs import FOLDER
    from lupi.settings import override, read_yaml

    path = FOLDER / "demo.yaml"
    if print_settings:
        print(path.read_text(encoding="utf-8"), end="")
        return
    raw = override(read_yaml(path), set_ or [])
    compare_and_print(raw, out, make_engine(workers=workers), as_json, quiet)
