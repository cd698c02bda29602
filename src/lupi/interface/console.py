"""Where progress and messages go: stderr, or the cell of a notebook. Results never do."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import Any

from rich.console import Console
from rich.markup import escape

from lupi.facts import Fact

stderr = Console(stderr=True)
MOST_LINES = 20
"""Where nothing can be drawn again, as in a file: about so many lines, however long it takes."""


@contextlib.contextmanager
def hushed(quiet: bool = True) -> Iterator[None]:
    """Say nothing while the work inside goes on; errors are raised as ever."""
    before, stderr.quiet = stderr.quiet, stderr.quiet or quiet
    try:
        yield
    finally:
        stderr.quiet = before


def can_redraw() -> bool:
    """Tell whether a table can be drawn again in place: a terminal, or a notebook with widgets."""
    if stderr.quiet:
        return False
    return find_spec("ipywidgets") is not None if stderr.is_jupyter else stderr.is_terminal


def say(message: str) -> None:
    """Tell the user something that is not a result."""
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

    progress = Progress(console=stderr, transient=True, disable=not can_redraw())
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


def time_text(seconds: float) -> str:
    """Write a time as a person would say it."""
    for length, name in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * length:
            return f"about {seconds / length:.0f} {name}"
    return f"about {seconds:.0f} seconds"
