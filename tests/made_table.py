"""A small table of deliveries, made up: every kind of column, and x* that is known afterwards."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from lupi.core import Task
from lupi.loaders.tables.settings import TableSettings
from lupi.tasks.table import TableTask
from lupi.tasks.table_network import TableNetworkSettings

HEADER = ["km", "van", "packed", "sent", "weight", "rain", "traffic", "hours", "late"]


def rows(n: int = 120, seed: int = 0) -> list[list[str]]:
    """km, van, packed, sent, weight (some missing) | x*: rain, traffic | targets: hours, late."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(n):
        km, weight = rng.uniform(1, 90), rng.normal(20, 5)
        van, packed = rng.choice(["old", "new", "bike"]), rng.random() < 0.5
        sent = np.datetime64("2024-01-01") + int(rng.integers(0, 360))
        rain, traffic = rng.exponential(2), rng.normal()
        slow = {"old": 1.3, "new": 1.0, "bike": 2.0}[str(van)]
        hours = slow * km / 40 + 0.4 * rain + 0.3 * traffic + rng.normal(0, 0.1)
        made.append(
            [
                f"{km:.3f}",
                str(van),
                str(bool(packed)),
                str(sent),
                "" if rng.random() < 0.1 else f"{weight:.2f}",
                f"{rain:.4f}",
                f"{traffic:.4f}",
                f"{hours:.4f}",
                "late" if hours > 2.8 else "in time",
            ]
        )
    return made


def write_csv(path: Path, made: list[list[str]], header: list[str] | None = HEADER) -> Path:
    lines = [*([header] if header else []), *made]
    path.write_text("".join(",".join(line) + "\n" for line in lines))
    return path


def settings_of(path: Path, target: str = "hours", **changes: Any) -> TableSettings:
    other = "late" if target == "hours" else "hours"
    raw = {"path": path, "target": target, "privileged": ["rain", "traffic"], "ignore": [other]}
    return TableSettings.parse({**raw, **changes}, "task")


def table_task(
    target: str = "hours", n: int = 120, network: dict[str, Any] | None = None, **changes: Any
) -> Task:
    student = TableNetworkSettings.parse(network or {"n_hidden": 16}, "network")
    with tempfile.TemporaryDirectory() as folder:
        path = write_csv(Path(folder) / "deliveries.csv", rows(n))
        return TableTask(settings_of(path, target, **changes), student)
