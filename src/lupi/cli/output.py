"""Two streams: results on stdout (one JSON document with --json), all else on stderr."""

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from lupi.facts import Fact

if TYPE_CHECKING:
    from lupi.evidence.answer import Summary

Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on stdout, all else on stderr.")
]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a setting, such as `train.epochs=20`. May be given several times.",
    ),
]
Out = Annotated[Path | None, typer.Option(help="Folder of the records. By default runs/NAME.")]
Workers = Annotated[
    int | None,
    typer.Option(min=1, help="Runs at a time, one core each. By default all cores."),
]

stderr = Console(stderr=True)


@contextlib.contextmanager
def resumable() -> Iterator[None]:
    """Let Ctrl-C end the work inside with a word on how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        say("interrupted; nothing recorded is lost: the same command goes on from here")
        raise typer.Exit(130) from None


def say(message: str) -> None:
    """Tell the person at the terminal something that is not a result."""
    stderr.print(message, highlight=False, soft_wrap=True)


def say_facts(facts: Sequence[Fact]) -> None:
    """Show what was found out about the data, a line or more for each fact."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for fact in facts:
        table.add_row(escape(fact.about), escape(fact.text))
    stderr.print(table, highlight=False)


@contextlib.contextmanager
def progress_of(what: str) -> Iterator[Callable[[int, int], None]]:
    """Give a function that shows how many of how many are done; its first call draws a bar."""
    from rich.progress import Progress

    progress = Progress(console=stderr, transient=True, disable=not stderr.is_terminal)
    bar = progress.add_task(what)

    def show(done: int, total: int) -> None:
        progress.start()
        progress.update(bar, completed=done, total=total)

    try:
        yield show
    finally:
        progress.stop()


def prepare_data(task: dict[str, Any]) -> None:
    """Decode a task's images, if it has any to decode, under a bar; say what was found."""
    from lupi.tasks.registry import prepare_task

    with progress_of("decoding images") as show:
        lines = prepare_task(task, show)
    for line in lines:
        say(escape(line))


def print_json(document: Mapping[str, Any]) -> None:
    """Print a result for programs."""
    print(json.dumps(document, indent=2, allow_nan=False))


def print_summary(
    folder: Path, as_json: bool, command: str | None, table: str | None = None
) -> "Summary":
    """Write the page of a comparison, and print its verdict: as text, as JSON or as a table."""
    from lupi.evidence.summary import summarise, to_json
    from lupi.records import read_comparison
    from lupi.report.page.document import write_report
    from lupi.report.tables import FORMATS
    from lupi.report.terminal import summary_table

    record = read_comparison(folder)
    summary = summarise(record)
    page = write_report(record, summary, command=command)
    if as_json:
        print_json(to_json(summary))
    elif table:
        print(FORMATS[table](summary), end="")
    else:
        Console().print(summary_table(summary))
    say(f"report: {page}")
    return summary


def time_text(seconds: float) -> str:
    """Write a time as a person would say it."""
    for length, name in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * length:
            return f"about {seconds / length:.0f} {name}"
    return f"about {seconds:.0f} seconds"
