"""`lupi train`: one run of a comparison."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from lupi.cli.output import Json, Out, Sets, prepare_data, print_json, resumable, say, stderr
from lupi.cli.torchrun import one_voice

if TYPE_CHECKING:
    from lupi.train.state import Row


def train(
    settings: Annotated[Path, typer.Argument(help="The YAML file of a comparison.")],
    arm: Annotated[
        str | None, typer.Option(help="Such as het-dropout/shuffled. By default the first.")
    ] = None,
    size: Annotated[int | None, typer.Option(help="Training rows. By default the largest.")] = None,
    seed: Annotated[int | None, typer.Option(help="By default the first.")] = None,
    set_: Sets = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Train one arm, with one size and one seed, of a comparison.

    The record is the one that `lupi compare` with the same file would write and reuse. The
    student, which never heard of x*, is `checkpoint/student.safetensors` in the run's folder.

    Example: `lupi train mine.yaml --arm het-dropout --size 300 --seed 0`

    On several cores, GPUs or nodes, with the same numbers within rounding:
    `torchrun --nproc-per-node 2 -m lupi train mine.yaml --arm het-dropout`
    """
    with one_voice():
        _train(settings, arm, size, seed, set_ or [], out, as_json)


def _train(
    settings: Path,
    arm: str | None,
    size: int | None,
    seed: int | None,
    changes: list[str],
    out: Path | None,
    as_json: bool,
) -> None:
    from lupi.configs import read_settings

    raw = read_settings(settings, changes)

    from lupi.comparison.one_run import plan_run  # takes seconds: not before the file was found
    from lupi.comparison.settings import ComparisonSettings
    from lupi.tasks.registry import build_task
    from lupi.train.parallel.processes import together
    from lupi.train.run import run

    comparison = ComparisonSettings.parse(raw, "")
    records = out or Path("runs") / comparison.name
    arm, run_settings = plan_run(comparison, arm, size, seed, records)
    with resumable():
        prepare_data(run_settings.task)
        task = build_task(run_settings.task, run_settings.network)
    for warning in task.warnings:
        say(f"[yellow]warning:[/] {escape(warning)}")
    folder = records / run_settings.run_id
    say(f"{arm}, n = {run_settings.size}, seed {run_settings.seed}, in {folder}")

    with (
        resumable(),
        Progress(
            TextColumn("epoch"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.description}"),
            console=stderr,
        ) as progress,
    ):
        bar = progress.add_task("", total=run_settings.train.epochs)

        def show(row: "Row") -> None:
            shown = row["stage"]  # whose student may mean nothing yet
            if row["val"] is not None:
                name = task.metric.of_an_epoch.name
                score = row["val"].get(name)
                shown = "diverged" if score is None else f"{name} {score:.3f}"
            shown += f", {run_settings.size / max(row['seconds'], 1e-9):.0f} rows/s"
            if not stderr.is_terminal:  # but a file, where no bar can move
                say(f"epoch {row['epoch']}: {shown}")
            if row["epoch"] == run_settings.train.epochs and task.metric.selected_by:
                shown += ", searching val and test"
            progress.update(bar, completed=row["epoch"], description=shown)

        processes = together(run_settings.train)
        result = run(run_settings, folder, show, processes, load=lambda *_: task)
    if not result:  # which the first of several processes tells
        return
    if as_json:
        print_json({"folder": str(folder), **result})
        return
    for split, scores in result["metrics"].items():
        print(f"{split:4}  " + "  ".join(f"{name} {value:.4f}" for name, value in scores.items()))
    print(f"{result['status']} after {result['epochs']} epochs, best was {result['best_epoch']}")
    if result["collapsed"]:
        print("collapsed: the variance no longer depends on x*")
