"""Two streams: results on stdout (one JSON document with --json), all else on stderr."""

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from lupi.interface.console import say

if TYPE_CHECKING:
    from lupi.interface.result import Comparison


RUN_AGAIN = "fix the problem and run the same command to resume"


@contextlib.contextmanager
def resumable() -> Iterator[None]:
    """Let Ctrl-C end the work inside with a word on how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        say("interrupted; finished runs are saved: run the same command to resume")
        raise typer.Exit(130) from None


def print_json(document: Mapping[str, Any]) -> None:
    """Print a result for programs."""
    print(json.dumps(document, indent=2, allow_nan=False))


def print_verdict(comparison: "Comparison", as_json: bool, table: str | None = None) -> None:
    """Print the verdict of a comparison: as text, as JSON or as a table."""
    from lupi.report.tables import FORMATS
    from lupi.report.terminal import summary_table

    if as_json:
        print_json(comparison.to_dict())
    elif table:
        print(FORMATS[table](comparison.summary), end="")
    else:
        Console().print(summary_table(comparison.summary))
