"""Small runs of the embedded task and from shards, for one process and for two."""

from pathlib import Path
from typing import Any

from lupi.tasks.images.image_files import shard_images
from lupi.tasks.images.imagenet import ImagenetSettings
from lupi.train.settings import RunSettings
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
SETTINGS = {
    name: RunSettings.parse({**DIGITS, **changes}, name).resolve()
    for name, changes in CHANGES.items()
}


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
    return RunSettings.parse({**raw, "train": train, "method": "het-dropout"}, "").resolve()
