"""`lupi report`: judge the records of a comparison."""

from pathlib import Path
from typing import Annotated

import typer

from lupi.cli.output import Json, print_summary


def report(
    folder: Annotated[Path, typer.Argument(help="What `lupi compare` wrote, such as runs/demo.")],
    as_json: Json = False,
) -> None:
    """Print the verdict of a comparison and write its page, `report.html`.

    Works while the comparison is running, too: it says what is missing. With --json: for each
    arm and size the mean, interval, verdict, p-value, label-saving factor, and the counts of
    collapsed and diverged runs.
    """
    print_summary(folder, as_json, command=None)
