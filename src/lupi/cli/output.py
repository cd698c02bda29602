"""Results go to stdout (one JSON document with --json), everything else to stderr."""

import contextlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import typer

from lupi.escapes import visible
from lupi.interface.console import PlainConsole, print_message

if TYPE_CHECKING:
    from lupi.interface.result import Comparison


CLOSED_PIPE = 141
"""Exit code of a command whose output was closed: 128 + SIGPIPE."""
RUN_AGAIN = "fix the problem and run the same command to resume"


@contextlib.contextmanager
def resumable() -> Iterator[None]:
    """End the command on Ctrl-C with a message that says how to resume."""
    try:
        yield
    except KeyboardInterrupt:
        print_message("interrupted; finished runs are saved: run the same command to resume")
        raise typer.Exit(130) from None


@contextlib.contextmanager
def closed_pipe_ends_quietly() -> Iterator[None]:
    """End the command without a message if the reader of stdout, such as `head`, has closed it."""
    stdout = sys.stdout
    sys.stdout = _Stdout(stdout)
    try:
        yield
    finally:
        try:
            sys.stdout.flush()
        finally:
            sys.stdout = stdout


class _Stdout:
    """Standard output that ends the command if its reader has closed it.

    The exit code is that of other Unix tools. The default action of SIGPIPE would also end the
    command when a worker dies. Typer and rich exit with 1, which is the code of a failed run.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write text."""
        try:
            return self._stream.write(text)
        except BrokenPipeError:
            self._exit()

    def flush(self) -> None:
        """Write what is buffered."""
        try:
            self._stream.flush()
        except BrokenPipeError:
            self._exit()

    def _exit(self) -> NoReturn:
        _discard(self._stream)
        raise SystemExit(CLOSED_PIPE) from None


def _discard(stream: TextIO) -> None:
    """Let a stream that can't be written to discard what Python flushes when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def print_json(document: Mapping[str, Any]) -> None:
    """Print a result for programs."""
    print(json.dumps(document, indent=2, allow_nan=False))


def print_json_error(message: str) -> None:
    """Print an error for programs, if stdout can be written to."""
    try:
        print_json({"error": message})
        sys.stdout.flush()
    except OSError:  # such as a full disk, which may be the error
        _discard(sys.stdout)


def print_text(text: str, end: str = "\n") -> None:
    """Print text that may come from a file, without control characters."""
    print(visible(text), end=end)


def print_verdict(comparison: "Comparison", as_json: bool, table: str | None = None) -> None:
    """Print the verdict of a comparison: as text, as JSON or as a table."""
    from lupi.report.tables import FORMATS
    from lupi.report.terminal import SummaryTable

    if as_json:
        print_json(comparison.to_dict())
    elif table:
        print_text(FORMATS[table](comparison.summary), end="")
    else:
        PlainConsole().print(SummaryTable(comparison.summary))
