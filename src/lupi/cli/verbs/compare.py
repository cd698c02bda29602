"""`lupi compare` and `lupi demo`: run or resume a comparison and print its verdict."""

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from lupi.cli import engines, options
from lupi.cli.options import Json, Quiet, Sets, Workers
from lupi.cli.output import RUN_AGAIN, print_verdict, resumable
from lupi.errors import LupiError
from lupi.interface.console import print_message, silenced


@options.takes_columns
def compare(
    settings: options.Source,
    columns: dict[str, Any],
    print_settings: Annotated[
        bool, typer.Option("--print-settings", help="Print the YAML of the comparison and exit.")
    ] = False,
    xstar_fracs: options.XstarFracs = None,
    until_decided: options.UntilDecided = False,
    max_seeds: options.MaxSeeds = None,
    confirm: options.Confirm = False,
    set_: options.Sets = None,
    allow: options.Allow = None,
    device: options.Device = None,
    out: options.Out = None,
    workers: options.Workers = None,
    engine: engines.Name = "local",
    address: engines.Address = None,
    cpus: engines.Cpus = None,
    gpus: engines.Gpus = 0,
    memory: engines.Memory = None,
    minutes: engines.Minutes = None,
    sbatch: engines.Sbatch = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    tensorboard: options.TensorBoard = False,
) -> None:
    """Train every arm at every size with every seed, and judge whether x* helped.

    Prints the verdict and writes a page for the browser, `report.html`, to the records folder.
    Finished runs are saved: stop the command at any time and run it again to resume. With
    `tuning:` in the settings, the settings of each arm are first chosen by validation scores.

    Example: `lupi compare mine.yaml --set seeds=8 --set train.epochs=40`

    A table needs no settings: all other columns are x, each seed draws its own training,
    validation and test rows, and the methods are compared with their controls, gradient
    boosting and a linear model.

    Example: `lupi compare pupils.csv --target G3 --privileged G1,G2 --ignore Id`

    Texts need no settings either. Their rationales are spans, snippets, flags or tags.

    Example: `lupi compare reviews.csv --text review --target label --rationale spans`

    Nor do images: a folder or a zip with masks or annotations. Classes, masks and boxes are
    found by the names of the files, and printed before anything trains.

    Example: `lupi compare tiles/` or `lupi compare images/ --masks masks/ --groups groups.csv`

    With --until-decided, seeds are added (7, 9, 12, 16, ...) until each arm with x* has an
    answer at each size, or up to --max-seeds. The verdict is corrected for these looks.

    Example: `lupi compare mine.yaml --until-decided --max-seeds 20`

    The gain of an arm that was chosen by its score is overstated. With --confirm, the arm that
    helps and its controls are trained on fresh seeds, and judged on these alone.

    Example: `lupi compare mine.yaml --confirm`

    On several machines, with records and data in a shared folder:

    Example: `lupi compare mine.yaml --engine ray --address auto`

    The exit code is 1 if a run failed, 2 for an error in the command, settings or data.
    """
    from lupi.interface.sources import settings_from

    changes, fractions = options.changes(set_, device), options.fractions(xstar_fracs)
    with silenced(quiet):
        raw = settings_from(settings, columns, changes, out, xstar_fracs=fractions)
    if print_settings:
        from lupi.report.page.provenance import as_yaml

        print(as_yaml(raw), end="")
        return
    if max_seeds is not None and not until_decided:
        raise LupiError("--max-seeds is for --until-decided; otherwise use --set seeds=N")
    does = engines.make_engine(engine, workers, address, cpus, gpus, memory, minutes, sbatch)

    from lupi.interface.running import DEFAULT_BUDGET, run_comparison
    from lupi.tasks.registry import find_task

    budget = max_seeds or (DEFAULT_BUDGET if until_decided else None)
    command = shlex.join(["lupi", *sys.argv[1:]])
    with silenced(quiet):
        with resumable():
            result = run_comparison(
                raw, out, does, budget, command, tensorboard=tensorboard, confirm=confirm
            )
        print_verdict(result, as_json)
        print_message(f"report: {result.folder / 'report.html'}")
        if find_task(raw["task"]["name"]).Settings.student_command is None:
            place = shlex.quote(str(result.folder))
            print_message(f"to export a student: lupi export {place} --out FOLDER")
    if not result.is_complete:
        n_all = len(result.record.runs)
        n_missing = n_all - len(result.record.finished)
        print_message(RUN_AGAIN, f"{n_missing} of {n_all} runs have no result:", "red")
        raise typer.Exit(1)


def demo(
    set_: Sets = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the records.")] = None,
    workers: Workers = None,
    print_settings: Annotated[
        bool, typer.Option("--print-settings", help="Print the demo's YAML file and exit.")
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare heteroscedastic dropout with its controls on cluttered digits, in a few minutes.

    x is an image of a handwritten digit among fragments of others, x* the digit's bounding box,
    known only in training. Nothing is downloaded. Prints a verdict and writes
    `runs/demo/report.html`.
    """
    from lupi.configs import FOLDER

    path = FOLDER / "demo.yaml"
    if print_settings:  # with its comments
        print(path.read_text(encoding="utf-8"), end="")
    else:
        compare(settings=path, set_=set_, out=out, workers=workers, as_json=as_json, quiet=quiet)
