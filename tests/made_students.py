"""Small finished runs, to ship their students."""

from pathlib import Path
from typing import Any

from lupi.loaders.text.made_reviews import write_reviews
from lupi.train.run import run
from made_images import image_folder
from made_reviews import COLUMNS
from made_runs import run_from
from made_table import rows, write_csv


def table_run(
    folder: Path,
    target: str = "hours",
    method: str = "het-dropout",
    name: str = "mlp",
    **network: Any,
) -> Path:
    """Train on deliveries.csv in the folder; return the run's folder."""
    path = write_csv(folder / "deliveries.csv", rows())
    other = "late" if target == "hours" else "hours"
    task = {"name": "table", "path": path, "target": target, "ignore": [other]}
    network |= {"n_hidden": 16} if name == "mlp" else {"name": name}
    return _run(folder, {**task, "privileged": ["rain", "traffic"]}, network, method, size=40)


def image_run(
    folder: Path,
    method: str = "het-dropout",
    network: dict[str, Any] | None = None,
    **task: Any,
) -> Path:
    """Train on the images in pets/ in the folder; return the run's folder."""
    image_folder(folder / "pets", n_images=8)
    settings = {
        "name": "image-folder",
        "root": folder / "pets",
        "boxes": "boxes.csv",
        "image_size": 16,
        "stored_size": 20,
        "n_val": 2,
        "n_test": 2,
        "cache": folder / "cache",
    }
    given = network or {"width": 2, "n_hidden": 8}
    return _run(folder, {**settings, **task}, given, method, size=8)


def text_run(folder: Path, method: str = "views", **network: Any) -> Path:
    """Train on made-up reviews in the folder; return the run's folder."""
    write_reviews(folder / "reviews.csv", 120)
    task = {"name": "text", "path": folder / "reviews.csv", **COLUMNS}
    return _run(folder, task, network, method, size=40)


def _run(
    folder: Path, task: dict[str, Any], network: dict[str, Any], method: str, size: int
) -> Path:
    raw = {"task": task, "network": network, "train": {"epochs": 2}, "method": method}
    settings = run_from({**raw, "size": size, "seed": 0})
    into = folder / "runs" / settings.run_id
    run(settings, into)
    return into
