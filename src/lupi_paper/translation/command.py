"""`lupi translate`: translate with a trained student."""

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress, TextColumn

from lupi.interface.console import print_message, stderr


def translate(
    run: Annotated[
        Path, typer.Argument(help="Folder of a finished run, or a folder with a single run.")
    ],
    beam: Annotated[
        int | None, typer.Option(min=1, max=100, help="Beam size. By default the run's setting.")
    ] = None,
    threads: Annotated[int, typer.Option(min=1, help="Number of torch threads.")] = 1,
) -> None:
    """Translate lines from stdin to stdout, with the student of a run.

    Lines are translated 64 at a time; from a terminal, one at a time. Empty lines stay empty. The
    input should be preprocessed like the run's training text, such as tokenised and lower-cased.
    x* is not needed.

    Example: `lupi translate runs/multi30k-en-de/0a1b2c3d4e5f < test.en > test.de`
    """
    import torch

    from lupi_paper.translation.saved import load_translator
    from lupi_paper.translation.translator import AT_ONCE

    torch.set_num_threads(threads)
    translator = load_translator(run, beam)
    lines = _lines()
    n_done = 0
    hidden = not stderr.is_terminal or sys.stdout.isatty()
    with Progress(
        TextColumn("{task.completed} lines"), console=stderr, transient=True, disable=hidden
    ) as progress:
        bar = progress.add_task("", total=None)
        while chunk := list(islice(lines, 1 if sys.stdin.isatty() else AT_ONCE)):
            for number, line in enumerate(chunk, start=n_done + 1):
                if translator.is_cut(line):
                    kept = f"only its first {translator.max_tokens} tokens are translated"
                    print_message(f"line {number} is too long; {kept}")
            translations = translator.translate(chunk)
            sys.stdout.buffer.write("".join(f"{t}\n" for t in translations).encode())
            sys.stdout.buffer.flush()
            n_done += len(chunk)
            progress.update(bar, completed=n_done)


def _lines() -> Iterator[str]:
    from lupi_paper.translation.text.parallel_text import decode_line

    for number, line in enumerate(sys.stdin.buffer, start=1):
        yield decode_line(line, "stdin", number)
