"""Small runs of the embedded task and from shards, for one process and for two."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lupi.core import Task
from lupi.tasks.images.image_files import shard_images
from lupi.tasks.registry import build_task, parse_network, parse_task
from lupi.train.settings import RunSettings
from lupi_paper.images.imagenet import ImagenetSettings
from made_images import imagenet

DIGITS: dict[str, Any] = {
    "task": {"name": "digits"},
    "network": {"width": 4},
    "size": 41,  # 41 = 2 * 20 + 1: of the last batch, one process has no row
    "seed": 0,
    # In double precision rounding stays small however long it adds up.
    "train": {"epochs": 4, "batch_size": 20, "clip": 1.0, "precision": "64-true"},
}
CHANGES: dict[str, dict[str, Any]] = {
    "plain": {"method": "no-xstar"},
    "partial": {"method": "het-dropout", "xstar_frac": 0.3},
    "stages": {"method": "het-dropout", "settings": {"curriculum": {"tower_epochs": 2}}},
    "resumed": {"method": "het-dropout", "xstar_frac": 0.6},
}


def run_from(raw: Mapping[str, Any]) -> RunSettings:
    """Return the settings of a run as a plan has them: with the fingerprint of its data."""
    return RunSettings.parse({**raw, "task": parse_task(raw["task"]).with_content()}, "")


def task_from(raw: Mapping[str, Any], network: Mapping[str, Any] = {}) -> Task:
    """Build a task from raw settings."""
    settings = parse_task(raw)
    return build_task(settings, parse_network(settings, network))


SETTINGS = {name: run_from({**DIGITS, **changes}) for name, changes in CHANGES.items()}


def made_shards(folder: Path) -> str:
    """Write 16 training images into four shards."""
    source = imagenet(folder / "source", n_images=10)
    shard_images(
        ImagenetSettings(root=str(source), image_size=12, n_val=1, n_test=1),
        folder / "shards",
        4,
        lambda done, total: None,
    )
    return str(folder / "shards")


def streamed(shards: str, **changes: Any) -> RunSettings:
    """Return a run over shards, in batches of which the last has one row."""
    task = {"name": "imagenet", "root": shards, "image_size": 12, "n_val": 1, "n_test": 1}
    raw = {**DIGITS, "task": {**task, "decoders": 2, **changes}, "size": 11}
    train = {**DIGITS["train"], "batch_size": 5}
    return run_from({**raw, "train": train, "method": "het-dropout"})
