"""Small runs of the embedded task, for one process and for two."""

from typing import Any

from lupi.train.run import RunSettings

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
