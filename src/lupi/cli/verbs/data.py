"""`lupi data`: what is done to data before anything is trained."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from lupi.cli.output import Json, Sets, print_json, progress_of, resumable, say

app = typer.Typer(
    help="Prepare data: `shard` writes images with boxes into webdataset shards, `reviews` makes "
    "texts with rationales up for a first try.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


@app.command()
def shard(
    settings: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A comparison's YAML file, or the name of one that comes with lupi: its `task` "
            "says which images.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the shards.")],
    shard_size: Annotated[int, typer.Option(min=1, help="Images in a shard.")] = 2000,
    set_: Sets = None,
    as_json: Json = False,
) -> None:
    """Write the images of a task, with labels and boxes, into webdataset shards.

    For data that do not fit: training then streams them, from this folder or from wherever you copy
    it, if `task.root` says so. Same rows, same held-out images, same pixels as from the files.
    Every image is decoded once to find bad ones (`task.on_bad`), and goes into its shard as it
    was. Stopped, it goes on where it was.

    Example: `lupi data shard paper/sizes --set task.root=/data/imagenet --out /data/shards`, then
    `lupi compare paper/sizes --set task.root=/data/shards`
    """
    from lupi.configs import read_settings

    raw = read_settings(settings, set_ or [])

    from lupi.comparison.settings import (
        ComparisonSettings,  # seconds: not before the file was found
    )
    from lupi.data.findings import Finding, Findings
    from lupi.data.images.layouts.index import PARTS
    from lupi.tasks.registry import shard_task

    task = ComparisonSettings.parse(raw, "").task
    with resumable(), progress_of("images") as show:
        about = shard_task(task, out, shard_size, show)
    counts = {part: sum(about["n_images"][part]) for part in PARTS}
    n_shards = {part: len(about["n_images"][part]) for part in PARTS}
    bad, notes = ([Finding(**found) for found in about[kind]] for kind in ("bad", "notes"))
    for line in Findings("skip", bad, notes).lines():
        say(escape(line))
    if as_json:
        print_json({"folder": str(out), "n_images": counts, "n_shards": n_shards})
        return
    for part, n in counts.items():
        print(f"{part:5}  {n} images in {n_shards[part]} shards")
    say(f"to train from them: --set task.root={escape(str(out))}")


@app.command()
def reviews(
    path: Annotated[Path, typer.Argument(metavar="FILE.csv", help="File to write.")],
    n: Annotated[int, typer.Option("--n", min=1, help="Reviews.")] = 600,
    seed: Annotated[int, typer.Option(min=0, help="Other seeds make other reviews.")] = 0,
) -> None:
    """Make product reviews up, with labels and rationales, to try lupi on texts.

    A small grammar writes them: what comes out on them says nothing about real texts. Columns:
    review, label (good or bad), spans.

    Example: `lupi data reviews reviews.csv`, then
    `lupi compare reviews.csv --text review --target label --rationale spans`
    """
    from lupi.data.text.made_reviews import write_reviews
    from lupi.errors import LupiError

    if path.exists():
        raise LupiError(f"{path} exists already; name another file")
    write_reviews(path, n, seed)
    say(f"{n} made-up reviews in {escape(str(path))}")
