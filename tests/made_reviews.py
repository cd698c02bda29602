"""Files with texts and rationales in every layout, for tests."""

import csv
import io
import json
import tempfile
from pathlib import Path
from typing import Any

from lupi.core import Task
from lupi.loaders.text.made_reviews import write_reviews
from lupi.tasks.text.network import TextNetworkSettings
from lupi.tasks.text.settings import TextSettings
from lupi.tasks.text.task import TextTask

COLUMNS = {"text": "review", "target": "label", "rationale": "spans"}


def write_csv(path: Path, rows: list[list[Any]], separator: str = ",") -> Path:
    """Write rows, the first of which names the columns; lists become JSON."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator)
    writer.writerows(
        [json.dumps(cell) if isinstance(cell, list) else cell for cell in row] for row in rows
    )
    path.write_text(text.getvalue(), encoding="utf-8")
    return path


def write_jsonl(path: Path, rows: list[list[Any]]) -> Path:
    """Write the same rows as JSON lines."""
    names = rows[0]
    lines = [json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows[1:]]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def settings_of(path: Path, **changes: Any) -> TextSettings:
    return TextSettings.parse({"path": path, **COLUMNS, **changes}, "task")


def text_task(
    n: int = 80, network: dict[str, Any] | None = None, kind: str = "auto", **changes: Any
) -> Task:
    """Return a task over made-up reviews; regression predicts the number of words."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reviews.csv"
        write_reviews(path, n)
        if kind == "regression":
            names, *rows = csv.reader(io.StringIO(path.read_text(encoding="utf-8"), newline=""))
            write_csv(path, [names, *([t, len(t.split()), s] for t, _, s in rows)])
        return TextTask(
            settings_of(path, kind=kind, **changes), TextNetworkSettings.parse(network or {}, "")
        )
