"""Options that several verbs share: one name, one meaning."""

import csv
import functools
import inspect
from collections.abc import Callable
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any

import typer

from lupi.errors import LupiError
from lupi.permission import allow, allow_texts_in


def _allow(names: list[str] | None) -> list[str] | None:
    allow(*(names or ()))
    return names


DATA = "Your own data: columns of a table or of texts, annotations of images"

Source = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="A YAML file, the name of one included in lupi, such as `tables/students`, "
        "a table (CSV, also gzipped, Parquet, Excel), texts (with --text; JSON lines, too), or a "
        "folder or zip of images with masks or boxes. "
        "- reads a table or texts from stdin.",
    ),
]
COLUMNS: dict[str, tuple[str, str]] = {
    "target": ("COLUMN", "Column to predict."),
    "privileged": (
        "COLUMN,COLUMN",
        "Columns that are x* (tables only). Put names that contain a comma in double quotes.",
    ),
    "text": ("COLUMN", "Column with the texts (texts only)."),
    "rationale": (
        "COLUMN,COLUMN",
        "Column with the rationales (x*); the text column if tags mark them there; several columns "
        "for several annotators (texts only).",
    ),
    "masks": (
        "FOLDER",
        "Folder with masks (images only). By default where file names say that they are.",
    ),
    "boxes": (
        "FILE",
        "Annotations (images only): COCO, Label Studio, CVAT or CSV, or a folder of PASCAL VOC or "
        "YOLO files. By default what is found.",
    ),
    "labels": (
        "FILE",
        "CSV with columns file and label (images only). By default folders are classes.",
    ),
    "ignore": ("COLUMN,COLUMN", "Columns to drop, such as names or row numbers (tables only)."),
    "groups": (
        "COLUMN",
        "Group column: rows with the same value, such as one person's, are never split between "
        "training and test. For images, a CSV with columns file and group, or FILE:COLUMN.",
    ),
    "items": (
        "COLUMN",
        "Item column: rows with the same value are answers to one item, never split and scored "
        "once (tables only).",
    ),
    "gold": (
        "COLUMN",
        "Column with an item's true target, for scoring; by default the majority or mean of its "
        "answers (tables only).",
    ),
    "time": ("COLUMN", "Time column: training rows precede test rows (tables and texts)."),
    "split": ("COLUMN", "Column with train, val or test for each row (tables and texts)."),
    "weights": ("COLUMN", "Column with row weights (tables only)."),
    "by": (
        "COLUMN",
        "Column whose values are subgroups: results are shown for each of them, too. For images, "
        "of the CSV with labels or groups.",
    ),
    "metric": (
        "NAME",
        "Metric of the verdict, such as mae or f1_macro; all are recorded (tables and texts).",
    ),
}
"""Placeholder and help of each option about the user's data, in the order of the help page."""
LISTS = tuple(name for name, (holder, _) in COLUMNS.items() if "," in holder)
"""Those that may be given several times, or name several columns."""


def takes_columns(verb: Callable[..., None]) -> Callable[..., None]:
    """Give a verb the options in `COLUMNS` in place of its argument `columns`, which is a dict."""

    @functools.wraps(verb)
    def call(**given: Any) -> None:
        named = {name: given.pop(name, None) for name in COLUMNS}
        columns = {
            name: split_names(value, name) if isinstance(value, list) else value
            for name, value in named.items()
        }
        verb(**given, columns=columns)

    options = [
        Parameter(
            name,
            Parameter.POSITIONAL_OR_KEYWORD,
            default=None,
            annotation=Annotated[
                list[str] | None if name in LISTS else str | None,
                typer.Option(help=text, metavar=holder, rich_help_panel=DATA),
            ],
        )
        for name, (holder, text) in COLUMNS.items()
    ]
    parameters: list[Parameter] = []
    for own in inspect.signature(verb).parameters.values():
        parameters += options if own.name == "columns" else [own]
    call.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON document on stdout, everything else on stderr."),
]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a setting, such as `train.epochs=20`. May be given several times.",
    ),
]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        metavar="NAME",
        callback=_allow,
        help="Allow code, a shell command or a URL that the settings or the run name, such as "
        "`package.module:function`; exactly that name. May be given several times.",
    ),
]
Out = Annotated[Path | None, typer.Option(help="Folder for the records. By default runs/NAME.")]
Workers = Annotated[
    int | None,
    typer.Option(min=1, help="Number of parallel runs, one core each. By default all cores."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only the result and errors.")]
Device = Annotated[
    str | None,
    typer.Option(help="cpu, cuda, cuda:1 or mps. By default a GPU if there is one."),
]
TensorBoard = Annotated[
    bool,
    typer.Option(
        "--tensorboard", help="Write learning curves for TensorBoard to the records folder."
    ),
]
XstarFracs = Annotated[
    str | None,
    typer.Option(
        metavar="F,F,...",
        help="Fractions of training rows with x*, such as 0.1,0.25,0.5,1, for every arm that uses "
        "it. `lupi worth` then says how many labels one x* is worth.",
    ),
]
UntilDecided = Annotated[
    bool,
    typer.Option(
        "--until-decided",
        help="Add seeds where they are needed until every question has an answer.",
    ),
]
Confirm = Annotated[
    bool,
    typer.Option(
        "--confirm",
        help="If an arm helps, train it and its controls on as many fresh seeds, and show the "
        "gain on these alone.",
    ),
]
MaxSeeds = Annotated[
    int | None,
    typer.Option(
        min=2, max=10_000, help="Maximum number of seeds for --until-decided. By default 30."
    ),
]


def split_names(given: list[str], option: str) -> list[str] | None:
    """Return names that are separated by commas; one that contains a comma is quoted."""
    names = [name.strip() for line in csv.reader(given, skipinitialspace=True) for name in line]
    if "" in names:
        raise LupiError(f"--{option}: empty name in {','.join(given)!r}; expected columns")
    return names or None


def changes(set_: list[str] | None, device: str | None) -> dict[str, Any]:
    """Return the settings that --set and --device change."""
    from lupi.settings import read_changes

    given = read_changes(set_ or [])
    allow_texts_in(given)
    return given | ({} if device is None else {"train.device": device})


def fractions(given: str | None) -> list[float] | None:
    """Return the numbers of --xstar-fracs."""
    try:
        return None if given is None else [float(part) for part in given.split(",")]
    except ValueError:
        raise LupiError(
            f"--xstar-fracs: got {given!r}; expected fractions such as 0.1,0.25,0.5,1"
        ) from None
