"""`lupi train`: one run of a comparison."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

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
    from lupi.comparison.jobs import Event
    from lupi.core import Task
    from lupi.interface.callbacks import TensorBoardCurves
    from lupi.records import Metric, PlannedRun
    from lupi.train.loop import Row
    from lupi.train.settings import RunSettings


@options.takes_columns
def train(
    settings: options.Source,
    columns: dict[str, Any],
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
    with silenced(quiet), report_once():
        planned, run_settings, task, records = _plan(
            settings, columns, options.changes(set_, device), arm, size, seed, out
        )

        from lupi.files import is_locked, read_set_aside
        from lupi.interface.callbacks import TensorBoardCurves
        from lupi.train.processes import start_processes
        from lupi.train.run import run

        folder = records / planned.run_id
        print_message(f"{planned.arm}, n = {planned.size}, seed {planned.seed}, in {folder}")
        processes = start_processes(run_settings.train)
        kept = read_set_aside(records)
        first = processes.rank == 0
        curves = TensorBoardCurves(records) if tensorboard and first else None
        if first and is_locked(folder):
            print_message(f"another lupi is training this run in {folder}; waiting for it to end")
        with resumable(), _EpochBar(planned, run_settings.train.epochs, task.metric, curves) as bar:
            result = run(run_settings, folder, bar.show, processes, load=lambda *_: task)
        if first:
            print_set_aside(records, kept)
            _print_result(result, folder, as_json)
        if curves:
            curves(planned, _event(planned, "finished", result))


def _plan(
    settings: Path,
    columns: dict[str, Any],
    changes: dict[str, Any],
    arm: str | None,
    size: int | None,
    seed: int | None,
    out: Path | None,
) -> "tuple[PlannedRun, RunSettings, Task, Path]":
    """Return the run, its settings, its task, whose facts are printed, and the records folder."""
    from lupi.interface.sources import settings_from

    raw = settings_from(settings, columns, changes, out)

    from lupi.comparison.plan import plan_run  # takes seconds: not before the file was found
    from lupi.comparison.settings import ComparisonSettings
    from lupi.records import PlannedRun, default_folder
    from lupi.tasks.registry import build_task

    comparison = ComparisonSettings.parse(raw, "")
    records = out or default_folder(comparison.name)
    name, run_settings = plan_run(comparison, arm, size, seed, records)
    with resumable():
        prepare_data(run_settings.task)
        task = build_task(run_settings.task, run_settings.network)
        size, seed = run_settings.size, run_settings.seed
        facts = [*task.for_run(size, seed).facts, *task.run_facts(size, seed)]
    print_facts(facts)
    for warning in task.warnings:
        print_warning(warning)
    planned = PlannedRun(run_settings.run_id, name, run_settings.size, run_settings.seed)
    return planned, run_settings, task, records


class _EpochBar(Progress):
    """A bar of epochs with the last score; lines instead if the output can't be redrawn."""

    def __init__(
        self,
        planned: "PlannedRun",
        n_epochs: int,
        metric: "Metric",
        curves: "TensorBoardCurves | None",
    ) -> None:
        columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        status = TextColumn("{task.description}")
        super().__init__(
            TextColumn("epoch"), *columns, status, console=stderr, disable=not can_redraw()
        )
        self._planned, self._n_epochs, self._metric = planned, n_epochs, metric
        self._curves = curves
        self._bar = self.add_task("", total=n_epochs)

    def show(self, row: "Row") -> None:
        """Show an epoch."""
        status = row["stage"]  # without a score: its student is not trained yet
        if row["val"] is not None:
            name = self._metric.of_an_epoch.name
            score = row["val"].get(name)
            status = "diverged" if score is None else f"{name} {score:.3f}"
        status += f", {row['n_rows'] / max(row['seconds'], 1e-9):.0f} rows/s"
        every = max(1, self._n_epochs // MAX_LINES)
        if not can_redraw() and row["epoch"] % every == 0:  # a file, where no bar can move
            print_message(f"epoch {row['epoch']}: {status}")
        if self._curves:
            self._curves(self._planned, _event(self._planned, "epoch", row))
        if row["epoch"] == self._n_epochs and self._metric.selected_by:
            status += ", searching val and test"
        self.update(self._bar, completed=row["epoch"], description=status)


def _event(planned: "PlannedRun", what: Literal["epoch", "finished"], content: Any) -> "Event":
    from lupi.comparison.jobs import Event

    return Event(planned.run_id, what, content)


def _print_result(result: dict[str, Any], folder: Path, as_json: bool) -> None:
    if as_json:
        print_json({"folder": str(folder), **result})
        return
    _print_scores(result["metrics"])
    n_done = f"{result['epochs']} epoch{'s' if result['epochs'] != 1 else ''}"
    print(f"{result['status']} after {n_done}, best epoch {result['best_epoch']}")
    if result["collapsed"]:
        print("collapsed: the noise no longer depends on x*")


def _print_scores(metrics: dict[str, dict[str, float]]) -> None:
    """Print a line per metric, and a column per split, validation rows first."""
    splits = sorted(metrics, key=lambda split: split != "val")
    names = sorted({name for scores in metrics.values() for name in scores})
    width = max(map(len, names), default=0)
    print(" " * width + "".join(f"{split:>16}" for split in splits))
    for name in names:
        cells = (f"{metrics[s][name]:16.4f}" if name in metrics[s] else " " * 16 for s in splits)
        print(f"{name:{width}}" + "".join(cells))
