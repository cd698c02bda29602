"""Print progress and messages to stderr, or to the cell of a notebook. Results go elsewhere."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from lupi.errors import shortened
from lupi.escapes import visible
from lupi.facts import Fact
from lupi.files import read_set_aside


class PlainConsole(Console):
    """A console on which only rich itself writes control sequences, never the printed text."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render an object with control characters in its text as escapes."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(visible(segment.text), segment.style)


if TYPE_CHECKING:
    from lupi.settings import TaskSettings

stderr = PlainConsole(stderr=True)
MAX_LINES = 20
"""Approximate number of progress lines if the output is not a terminal, such as a file."""


@contextlib.contextmanager
def silenced(quiet: bool = True) -> Iterator[None]:
    """Print no messages inside the block if `quiet`; errors are raised as usual."""
    before, stderr.quiet = stderr.quiet, stderr.quiet or quiet
    try:
        yield
    finally:
        stderr.quiet = before


def can_redraw() -> bool:
    """Return whether output can be redrawn in place: a terminal, or a notebook with widgets."""
    if stderr.quiet:
        return False
    return find_spec("ipywidgets") is not None if stderr.is_jupyter else stderr.is_terminal


def print_message(message: str, label: str = "", style: str = "") -> None:
    """Print a message that is not a result, as it is: it has no markup.

    Args:
        message: The text; of a very long one, the middle is left out.
        label: Printed before it in the given style, such as `warning:`.
        style: Style of the label, such as `yellow`.
    """
    text = Text.assemble((f"{label} " if label else "", style), shortened(message))
    stderr.print(text, highlight=False, soft_wrap=True)


def print_warning(message: str) -> None:
    """Print a warning."""
    print_message(message, "warning:", "yellow")


def print_set_aside(folder: Path, before: Mapping[Path, str]) -> None:
    """Print which damaged records were set aside in a folder since it had those in `before`."""
    for path, reason in read_set_aside(folder).items():
        if path not in before:
            print_warning(f"{reason}; the damaged files are kept in {path}")


def print_facts(facts: Sequence[Fact]) -> None:
    """Print facts about the data as a table."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for fact in facts:
        table.add_row(Text(fact.about), Text(fact.text))
    stderr.print(table, highlight=False)


@contextlib.contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a function that updates a progress bar with (done, total); the first call draws it."""
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


def prepare_data(task: "TaskSettings") -> None:
    """Decode the images of a task, if it has any, with a progress bar."""
    from lupi.tasks.registry import prepare_task

    with progress_bar("decoding images") as show:
        prepare_task(task, show)


def time_text(seconds: float) -> str:
    """Return a duration in words, such as `about 3 hours`."""
    for length, name in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * length:
            return f"about {seconds / length:.0f} {name}"
    return f"about {seconds:.0f} seconds"
