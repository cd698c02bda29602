"""`lupi.compare`: from data to a verdict on x*."""

import difflib
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from lupi.comparison.engines.in_process import in_process_engine
from lupi.comparison.engines.local import local_engine
from lupi.comparison.jobs import Engine
from lupi.errors import LupiError
from lupi.interface.callbacks import Callback
from lupi.interface.console import silenced
from lupi.interface.result import Comparison
from lupi.interface.running import DEFAULT_BUDGET, run_comparison
from lupi.interface.sources import settings_from
from lupi.permission import allow_texts_in

Names = str | Sequence[str]
LISTS = ("privileged", "rationale", "ignore")
COLUMNS = (
    *("target", "text", "masks", "boxes", "labels", "groups", "items", "gold", "time", "split"),
    *("weights", "by", *LISTS),
)
"""Arguments about the data; those in `LISTS` take one name or several."""


def compare(
    data: Any,
    *,
    target: str | None = None,
    privileged: Names | None = None,
    text: str | None = None,
    rationale: Names | None = None,
    masks: str | Path | None = None,
    boxes: str | Path | None = None,
    labels: str | Path | None = None,
    ignore: Names | None = None,
    groups: str | None = None,
    items: str | None = None,
    gold: str | None = None,
    time: str | None = None,
    split: str | None = None,
    weights: str | None = None,
    by: str | None = None,
    arms: Sequence[str] | Mapping[str, Any] | None = None,
    sizes: Sequence[int] | None = None,
    xstar_fracs: Sequence[float] | None = None,
    seeds: int | Sequence[int] | None = None,
    until_decided: bool | int = False,
    confirm: bool = False,
    device: str | None = None,
    changes: Mapping[str, Any] | None = None,
    folder: str | Path | None = None,
    processes: int | None = None,
    quiet: bool = False,
    callback: Callback | None = None,
    tensorboard: bool = False,
    network: Callable[[], Any] | None = None,
    **task: Any,
) -> Comparison:
    """Train every arm at every size with every seed, and judge whether x* helped.

    Runs with a result in `folder` are reused, so an interrupted call can be repeated; the results
    are the same.

    Args:
        data: a pandas DataFrame; the path of a table, of texts, or of a folder or zip of images;
            settings of a comparison as a
            mapping, as the path of a YAML file or as a name that comes with lupi, such as
            `"demo"`; or a task of your own, such as one by `lupi.dataset_task`.
        target: column to predict.
        privileged: columns that are x* (tables).
        text: column with the texts (texts only).
        rationale: column with the rationales, which are x* (texts only).
        masks: folder with masks (images); by default where file names say that they are.
        boxes: annotations (images): COCO, Label Studio, CVAT or CSV, or a folder of PASCAL VOC or
            YOLO files; by default what is found.
        labels: CSV with columns file and label (images); by default folders are classes.
        ignore: columns to drop, such as names or row numbers (tables).
        groups: column whose rows of equal value, such as those of one person, are never divided
            between training and test; of images, a CSV with columns file and group.
        items: column whose rows of equal value are answers to one item: never divided, and scored
            once (tables).
        gold: column with an item's true target, to score against; by default what its answers say
            together (tables).
        time: column by which training rows precede test rows.
        split: column that says train, val or test for each row.
        weights: column that says how much a row counts (tables).
        by: column whose values are subgroups, for which results are shown, too; of a number with
            many values, quarters of the rows. Of images, a column of the CSV with labels or groups.
        arms: names of arms to keep, or of other methods to add with a shuffled control; or the
            settings of all arms, by name. The plain model, `no-xstar`, is always among them.
        sizes: numbers of training rows.
        xstar_fracs: fractions of the training rows that have x*, for all arms that use it; then
            `.worth()` says how many labels one x* is worth.
        seeds: how many replicates, or which seeds. 10 by default for data of your own.
        until_decided: add seeds where they are needed until every question has an answer; a number
            is the most seeds, True stands for 30.
        confirm: if an arm helps, train it and its controls on as many fresh seeds, and show the
            gain on these alone, which choosing the best arm can't overstate.
        device: cpu, cuda, cuda:1 or mps; by default a GPU if there is one.
        changes: other settings by their path, such as `{"train.epochs": 20}`.
        folder: of the records; by default runs/NAME.
        processes: runs at a time, one core each; by default as many as there are cores. A task of
            your own is run in this process.
        quiet: show no progress and no messages.
        callback: called as callback(run, event) with what happens to each run: `run` has `arm`,
            `size`, `seed` and `run_id`; `event.what` is started, epoch, finished or failed, and
            `event.content` a row of metrics, a result or an error.
        tensorboard: write learning curves to `tensorboard/` in the folder of the records.
        network: a function without arguments that builds your own network, with datasets for
            training, validation and test as `data`: see `lupi.dataset_task`.
        task: other settings of the table or the texts, such as `metric="auc"`.

    Returns:
        The `Comparison`: `.verdict`, `.to_frame()`, `.report(path)`, `.student()`.

    Example:
        >>> result = lupi.compare(frame, target="late", privileged=["rain", "traffic"])
        >>> result.verdict
    """
    given = {name: value for name, value in locals().items() if name in COLUMNS}
    columns = {**given, **{name: _names(given[name]) for name in LISTS}, **task}
    _refuse_typos(task)
    if network is not None:
        data = _own_network(data, network)
    if callback is not None and tensorboard:
        raise LupiError("give either callback or tensorboard, not both")
    replaced = {"sizes": _plain(sizes), "seeds": _plain(seeds), "train.device": device}
    every = {**(changes or {}), **{key: v for key, v in replaced.items() if v is not None}}
    allow_texts_in(every)
    place = Path(folder) if folder is not None else None
    with silenced(quiet), torch.random.fork_rng(devices=[]):  # the caller's draws do not change
        raw = _settings(data, columns, every, place, arms, xstar_fracs)
        engine = make_engine(raw, processes)
        budget = seed_budget(until_decided)
        return run_comparison(
            raw,
            place,
            engine,
            budget,
            callback=callback,
            tensorboard=tensorboard,
            confirm=confirm,
        )


def _own_network(data: Any, network: Callable[[], Any]) -> Any:
    """Return the task of a user's datasets and network."""
    from lupi.tasks.datasets import dataset_task

    if not isinstance(data, tuple | list) or len(data) != 3:
        raise LupiError(
            "network: with a network of your own, data are three datasets: "
            "lupi.compare((train, val, test), network=build); train has (x, x*, y), others (x, y)"
        )
    train, val, test = data
    return dataset_task(train, val, test, network)


def _settings(*given: Any, **more: Any) -> dict[str, Any]:
    """Return raw settings; errors speak of arguments instead of options of the command."""
    try:
        return settings_from(*given, **more)
    except LupiError as error:
        raise LupiError(in_python(str(error))) from None


def in_python(message: str) -> str:
    """Return a message of the command for users of Python: `--target` is the argument target."""
    message = re.sub(r"on the command line, give (.*)$", "give them as arguments", message)
    return re.sub(r"(?<![\w-])--([a-z][a-z-]*)", lambda m: m[1].replace("-", "_"), message)


def _refuse_typos(given: Mapping[str, Any]) -> None:
    """Raise an error for an argument that is nearly the name of another, such as `seed`."""
    known = list(inspect.signature(compare).parameters)
    for name in given:
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.85)
        if near:
            raise LupiError(f"{name}: no such argument; did you mean `{near[0]}`?")


def seed_budget(until_decided: bool | int) -> int | None:
    """Return the maximum number of seeds of a comparison until decided; None for a fixed plan."""
    if isinstance(until_decided, bool):
        return DEFAULT_BUDGET if until_decided else None
    if until_decided < 2:
        raise LupiError(f"until_decided: expected 2 seeds or more, got {until_decided}")
    return until_decided


def make_engine(raw: Mapping[str, Any], processes: int | None) -> Engine:
    """Return an engine with worker processes; this process for a task given in Python."""
    if isinstance(raw.get("task"), Mapping) and raw["task"].get("name") == "custom":
        if processes not in (None, 1):
            raise LupiError(
                "processes: a task of your own is run in this process; give 1, or leave it out. "
                'More cores are used with changes={"train.n_threads": 2}'
            )
        return in_process_engine()
    return local_engine(processes)


def _names(given: Names | None) -> list[str] | None:
    """Return column names as a list; a string is one name, even if it contains a comma."""
    if given is None:
        return None
    return [given] if isinstance(given, str) else list(given)


def _plain(given: Any) -> Any:
    return list(given) if isinstance(given, Sequence | range) else given
