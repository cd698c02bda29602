"""`lupi train`: one run of a comparison."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from lupi.cli.output import Json, Out, Sets, print_json, resumable, say, stderr
from lupi.cli.torchrun import one_voice

if TYPE_CHECKING:
    from lupi.train.fit import Row


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
    from lupi.cli.compare import prepared_plan
    from lupi.configs import read_settings
    from lupi.errors import LupiError
    from lupi.settings import unknown_name

    given = prepared_plan(read_settings(settings, changes))

    from lupi.compare.comparison import tune  # takes seconds: not before the file was found
    from lupi.train.processes import together
    from lupi.train.run import run

    records = out or Path("runs") / given.settings.name
    plan = tune(given, records)
    if plan is None:
        raise LupiError(
            f"the settings of the arms are still to be tuned in {records}: run `lupi compare` "
            "first, or train with those that are given by `--set tuning=null`"
        )
    arm = arm or plan.arms[0].name
    if arm not in (names := [a.name for a in plan.arms]):
        raise LupiError(f"--arm: {unknown_name('arm', arm, names)}")
    size = max(plan.settings.sizes) if size is None else size
    seed = plan.settings.seeds[0] if seed is None else seed
    of_arm = {planned.size: run for planned, run in plan.runs if planned.arm == arm}
    template = of_arm.get(size, of_arm[max(of_arm)])
    run_settings = template.parse({**template.resolved(), "size": size, "seed": seed}, "")
    folder = records / run_settings.run_id
    say(f"{arm}, n = {size}, seed {seed}, in {folder}")

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
                name = plan.metric.of_an_epoch.name
                score = row["val"].get(name)
                shown = "diverged" if score is None else f"{name} {score:.3f}"
            shown += f", {size / max(row['seconds'], 1e-9):.0f} rows/s"
            if not stderr.is_terminal:  # but a file, where no bar can move
                say(f"epoch {row['epoch']}: {shown}")
            if row["epoch"] == run_settings.train.epochs and plan.metric.selected_by:
                shown += ", searching val and test"
            progress.update(bar, completed=row["epoch"], description=shown)

        result = run(run_settings, folder, show, together(run_settings.train))
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
