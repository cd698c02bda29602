"""`lupi predict`: predict with a trained student."""

import csv
import io
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.progress import Progress, TextColumn

from lupi.escapes import csv_cell, visible
from lupi.interface.console import print_message, stderr

if TYPE_CHECKING:
    from lupi.ship.description import Prediction

N_BAD_SHOWN = 5


def predict(
    run: Annotated[
        Path,
        typer.Argument(help="Folder of an exported student, a finished run or a comparison."),
    ],
    inputs: Annotated[
        list[Path] | None,
        typer.Argument(help="Tables, files with texts, or images and folders; - is stdin."),
    ] = None,
    texts: Annotated[
        list[str] | None,
        typer.Option(
            "--input", metavar="TEXT", help="A text to predict; may be given several times."
        ),
    ] = None,
    format_: Annotated[
        Literal["jsonl", "csv"], typer.Option("--format", help="JSON lines, or CSV with a header.")
    ] = "jsonl",
    on_bad: Annotated[
        Literal["stop", "skip"],
        typer.Option(help="For rows or files that can't be read: stop, or skip and count them."),
    ] = "stop",
    batch_size: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Inputs per batch; 1 answers a stream line by line. By default 4096 rows of "
            "files, 128 of all else.",
        ),
    ] = None,
    threads: Annotated[int, typer.Option(min=1, help="Number of threads.")] = 1,
) -> None:
    """Predict with a student: one line on stdout for each row, image or text.

    Output is the class with all probabilities, or mean and standard deviation. A table is CSV
    (also gzipped or from stdin), Parquet or Excel with the columns that the student was trained
    on; other columns, including x*, are ignored. `row` counts the rows of a file from 1.
    For images, stdin (-) is a list of files. Texts are strings (--input), files like the
    training texts, or lines of stdin or of a .txt file.

    Example: `lupi predict shipped new.csv --format csv > predictions.csv`

    Example: `lupi predict shipped --input "a silly film"`
    """
    if "numpy" not in sys.modules:  # which reads it when it is imported
        os.environ.setdefault("OPENBLAS_NUM_THREADS", str(threads))
    from lupi.errors import LupiError
    from lupi.ship.inputs import default_batch_size, read_inputs
    from lupi.ship.manifest import MANIFEST
    from lupi.ship.pick import pick_run
    from lupi.ship.predictor import load_predictor

    if not (run / MANIFEST).exists():
        picked = pick_run(run)
        run = picked.folder
        print_message(picked.why)
    student = load_predictor(run, threads)
    description = student.description
    write = _csv_writer() if format_ == "csv" else _write_json
    at_once = batch_size or default_batch_size(description, inputs or [])
    if sys.stdin.isatty() and not (inputs or texts):
        at_once = 1
    n_done = n_bad = 0
    said: tuple[str, ...] = ()
    hidden = not stderr.is_terminal or sys.stdout.isatty()
    with Progress(
        TextColumn("{task.completed} predicted"), console=stderr, transient=True, disable=hidden
    ) as progress:
        bar = progress.add_task("", total=None)
        for batch in read_inputs(student, inputs or [], _lines(), at_once, texts or []):
            if batch.ignored != said:
                said = tuple(batch.ignored)
                listed = ", ".join(said)
                print_message(f"ignored columns, which the student does not use: {listed}")
            n_good = batch.n_before_bad if on_bad == "stop" else len(batch.x)
            if n_good:
                predictions = description.target.explain(student.outputs(batch.x[:n_good]))
                unknown = description.unknown(batch.x[:n_good])
                for row, prediction in enumerate(predictions):
                    if row in unknown or (format_ == "csv" and not description.features):
                        prediction["unknown"] = unknown.get(row, "")
                names = batch.names[:n_good]
                write([{**n, **p} for n, p in zip(names, predictions, strict=True)])
            sys.stdout.flush()
            if batch.bad and on_bad == "stop":
                raise LupiError(
                    f"{batch.bad[0]}; correct it, or skip such inputs with --on-bad skip"
                )
            for reason in batch.bad[: max(0, N_BAD_SHOWN - n_bad)]:
                print_message(f"skipped {reason}")
            n_bad += len(batch.bad)
            n_done += len(batch.x)
            progress.update(bar, completed=n_done)
    if n_bad:
        print_message(f"skipped {n_bad} of {n_bad + n_done} inputs")
    if not n_done:
        raise LupiError("nothing to predict: there was no valid input")


def _lines() -> Iterator[str]:
    """Yield the lines of stdin, whatever the locale; newlines are left to whoever reads CSV."""
    yield from io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8-sig", newline="")


def _write_json(predictions: "list[Prediction]") -> None:
    text = json.dumps(predictions, ensure_ascii=False, allow_nan=False)
    # One line each. Inside strings, a quotation mark follows a backslash.
    _write(text[1:-1].replace('}, {"', '}\n{"') + "\n")


def _write(text: str) -> None:
    """Write to stdout as it is, but to a terminal without control characters."""
    sys.stdout.write(visible(text) if sys.stdout.isatty() else text)


def _csv_writer() -> "Callable[[list[Prediction]], None]":
    """Return what writes predictions, and the names of the columns before the first."""
    has_head = False

    def write(predictions: "list[Prediction]") -> None:
        nonlocal has_head
        rows = [_flat(prediction) for prediction in predictions]
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if not has_head:
            writer.writerow(map(csv_cell, rows[0]))
            has_head = True
        writer.writerows(map(csv_cell, row.values()) for row in rows)
        _write(text.getvalue())

    return write


def _flat(prediction: "Prediction") -> dict[str, Any]:
    """Give each class a column: p(class)."""
    probabilities = prediction.get("probabilities", {})
    flat = {key: value for key, value in prediction.items() if key != "probabilities"}
    return flat | {f"p({name})": value for name, value in probabilities.items()}
