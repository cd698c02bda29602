"""`lupi train`: one run of a comparison."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from lupi.cli import options
from lupi.cli.output import print_json, resumable
from lupi.cli.torchrun import report_once
from lupi.interface.console import (
    MAX_LINES,
    can_redraw,
    prepare_data,
    print_facts,
    print_message,
    print_set_aside,
    print_warning,
    silenced,
    stderr,
)

if TYPE_CHECKING:
    from lupi.interface.callbacks import TensorBoardCurves
    from lupi.train.loop import Row


def train(
    settings: options.Source,
    target: options.Target = None,
    privileged: options.Privileged = None,
    text: options.Text = None,
    rationale: options.Rationale = None,
    ignore: options.Ignore = None,
    groups: options.Groups = None,
    items: options.Items = None,
    gold: options.Gold = None,
    time: options.Time = None,
    split: options.Split = None,
    weights: options.Weights = None,
    metric: options.Metric = None,
    arm: Annotated[
        str | None, typer.Option(help="Arm, such as het-dropout/shuffled. By default the first.")
    ] = None,
    size: Annotated[int | None, typer.Option(help="Training rows. By default the largest.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed. By default the first.")] = None,
    set_: options.Sets = None,
    allow: options.Allow = None,
    device: options.Device = None,
    out: options.Out = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    tensorboard: options.TensorBoard = False,
) -> None:
    """Train one run of a comparison: one arm, one size, one seed.

    `lupi compare` with the same file writes the same record, or reuses it. The student, which
    needs no x*, is `checkpoint/student.safetensors` in the run's folder.

    Example: `lupi train mine.yaml --arm het-dropout --size 300 --seed 0`

    Example: `lupi train pupils.csv --target G3 --privileged G1,G2 --arm het-dropout`

    On several cores, GPUs or nodes (see docs/distributed.md):
    `torchrun --nproc-per-node 2 -m lupi train mine.yaml --arm het-dropout`
    """
    columns = options.columns(
        target=target,
        privileged=privileged,
        text=text,
        rationale=rationale,
        ignore=ignore,
        groups=groups,
        items=items,
        gold=gold,
        time=time,
        split=split,
        weights=weights,
        metric=metric,
    )
    with silenced(quiet), report_once():
        changes = options.changes(set_, device)
        _train(settings, columns, arm, size, seed, changes, out, as_json, tensorboard)


def _train(
    settings: Path,
    columns: dict[str, Any],
    arm: str | None,
    size: int | None,
    seed: int | None,
    changes: dict[str, Any],
    out: Path | None,
    as_json: bool,
    tensorboard: bool,
) -> None:
    from lupi.interface.sources import settings_from

    raw = settings_from(settings, columns, changes, out)

    from lupi.comparison.jobs import Event
    from lupi.comparison.one_run import plan_run  # takes seconds: not before the file was found
    from lupi.comparison.settings import ComparisonSettings
    from lupi.files import is_locked, read_set_aside
    from lupi.records import PlannedRun, default_folder
    from lupi.tasks.registry import build_task
    from lupi.train.processes import start_processes
    from lupi.train.run import run

    comparison = ComparisonSettings.parse(raw, "")
    records = out or default_folder(comparison.name)
    arm, run_settings = plan_run(comparison, arm, size, seed, records)
    with resumable():
        prepare_data(run_settings.task)
        task = build_task(run_settings.task, run_settings.network)
        facts = task.for_run(run_settings.size, run_settings.seed).facts
    print_facts(facts)
    for warning in task.warnings:
        print_warning(warning)
    planned = PlannedRun(run_settings.run_id, arm, run_settings.size, run_settings.seed)
    folder = records / planned.run_id
    print_message(f"{arm}, n = {run_settings.size}, seed {run_settings.seed}, in {folder}")
    processes = start_processes(run_settings.train)
    kept = read_set_aside(records)
    curves = _curves(records) if tensorboard and processes.rank == 0 else None
    n_epochs = run_settings.train.epochs
    every = max(1, n_epochs // MAX_LINES)

    with (
        resumable(),
        Progress(
            TextColumn("epoch"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.description}"),
            console=stderr,
            disable=not can_redraw(),
        ) as progress,
    ):
        bar = progress.add_task("", total=n_epochs)

        def show(row: "Row") -> None:
            status = row["stage"]  # without a score: its student is not trained yet
            if row["val"] is not None:
                name = task.metric.of_an_epoch.name
                score = row["val"].get(name)
                status = "diverged" if score is None else f"{name} {score:.3f}"
            status += f", {run_settings.size / max(row['seconds'], 1e-9):.0f} rows/s"
            if not can_redraw() and row["epoch"] % every == 0:  # a file, where no bar can move
                print_message(f"epoch {row['epoch']}: {status}")
            if curves:
                curves(planned, Event(planned.run_id, "epoch", row))
            if row["epoch"] == n_epochs and task.metric.selected_by:
                status += ", searching val and test"
            progress.update(bar, completed=row["epoch"], description=status)

        if processes.rank == 0 and is_locked(folder):
            print_message(f"another lupi is training this run in {folder}; waiting for it to end")
        result = run(run_settings, folder, show, processes, load=lambda *_: task)
    if processes.rank == 0:
        print_set_aside(records, kept)
    if not result:  # which the first of several processes tells
        return
    if curves:
        curves(planned, Event(planned.run_id, "finished", result))
    if as_json:
        print_json({"folder": str(folder), **result})
        return
    _print_scores(result["metrics"])
    n_done = f"{result['epochs']} epoch{'s' if result['epochs'] != 1 else ''}"
    print(f"{result['status']} after {n_done}, best epoch {result['best_epoch']}")
    if result["collapsed"]:
        print("collapsed: the noise no longer depends on x*")


def _curves(records: Path) -> "TensorBoardCurves":
    from lupi.interface.callbacks import TensorBoardCurves

    curves = TensorBoardCurves(records)
    print_message(f"learning curves: tensorboard --logdir {curves.folder}")
    return curves


def _print_scores(metrics: dict[str, dict[str, float]]) -> None:
    """Print a line per metric, and a column per split, validation rows first."""
    splits = sorted(metrics, key=lambda split: split != "val")
    names = sorted({name for scores in metrics.values() for name in scores})
    width = max(map(len, names), default=0)
    print(" " * width + "".join(f"{split:>16}" for split in splits))
    for name in names:
        cells = (f"{metrics[s][name]:16.4f}" if name in metrics[s] else " " * 16 for s in splits)
        print(f"{name:{width}}" + "".join(cells))
