"""`lupi demo`: the whole way from data to verdict, on embedded data."""

from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from lupi.cli.engines import make_engine
from lupi.cli.output import Json, Sets, Workers


def demo(
    set_: Sets = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the records.")] = None,
    workers: Workers = None,
    settings: Annotated[
        bool, typer.Option("--settings", help="Print the demo's YAML file and exit.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Compare heteroscedastic dropout with its controls on cluttered digits, in some minutes.

    x is an image of a handwritten digit among fragments of others, x* the digit's box, known
    in training only. Nothing is downloaded. Ends with a verdict and `runs/demo/report.html`.
    """
    import yaml

    from lupi.cli.verbs.compare import command_line, run_comparison
    from lupi.settings import override

    text = resources.files("lupi.configs").joinpath("demo.yaml").read_text(encoding="utf-8")
    if settings:
        print(text, end="")
        return
    raw = override(yaml.safe_load(text), set_ or [])
    run_comparison(raw, out, make_engine(workers=workers), as_json, command=command_line())
