"""`lupi data`: prepare data before training."""

from pathlib import Path
from typing import Annotated

import typer

from lupi.cli.options import Allow, Json, Sets, changes
from lupi.cli.output import print_json, resumable
from lupi.interface.console import print_message, progress_bar

app = typer.Typer(
    help="Prepare data: `shard` writes images with boxes into webdataset shards, `reviews` "
    "generates texts with rationales for a first try.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


@app.command()
def shard(
    settings: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="YAML file of a comparison, or the name of one included in lupi. Its `task` "
            "defines the images.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the shards.")],
    shard_size: Annotated[int, typer.Option(min=1, help="Images per shard.")] = 2000,
    set_: Sets = None,
    allow: Allow = None,
    as_json: Json = False,
) -> None:
    """Write the images of a task, with labels and boxes, into webdataset shards.

    Use shards for data that do not fit on one disk or in memory: with `task.root` set to this
    folder, or to a copy of it, training streams the images. Rows, held-out images and pixels are
    the same as from the files. Every image is decoded once to find invalid ones (`task.on_bad`),
    and stored unchanged. If interrupted, run the command again to resume.

    Example: `lupi data shard paper/sizes --set task.root=/data/imagenet --out /data/shards`, then
    `lupi compare paper/sizes --set task.root=/data/shards`
    """
    from lupi.configs import read_settings
    from lupi.settings import assign

    raw = assign(read_settings(settings), changes(set_, None))

    from lupi.comparison.settings import (
        ComparisonSettings,  # seconds: not before the file was found
    )
    from lupi.loaders.findings import Findings
    from lupi.tasks.registry import shard_task

    task = ComparisonSettings.parse(raw, "").task
    with resumable(), progress_bar("images") as show:
        about = shard_task(task, out, shard_size, show)
    counts, n_shards = about["n_images"], about["n_shards"]
    findings = Findings("skip")
    findings.extend(about["findings"])
    for line in findings.lines():
        print_message(line)
    if as_json:
        print_json({"folder": str(out), "n_images": counts, "n_shards": n_shards})
        return
    for part, n in counts.items():
        print(f"{part:5}  {n} images in {n_shards[part]} shards")
    print_message(f"to train from them: --set task.root={out}")


@app.command()
def reviews(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="File to write: CSV, or a Label Studio export (.json)."
        ),
    ],
    n: Annotated[int, typer.Option("--n", min=1, help="Number of reviews.")] = 600,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the generator.")] = 0,
) -> None:
    """Generate product reviews with labels and rationales, to try lupi on texts.

    They come from a small grammar, so results on them say nothing about real texts. Columns of a
    CSV: review, label (good or bad), spans.

    Example: `lupi data reviews reviews.json`, then `lupi compare reviews.json`

    Example: `lupi data reviews reviews.csv`, then
    `lupi compare reviews.csv --text review --target label --rationale spans`
    """
    from lupi.errors import LupiError
    from lupi.loaders.text.made_reviews import write_reviews

    if path.exists():
        raise LupiError(f"{path} already exists; choose another name")
    write_reviews(path, n, seed)
    print_message(f"{n} generated reviews in {path}")
