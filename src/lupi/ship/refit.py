"""Train the student to ship on all labels, with the settings that a comparison chose.

A comparison holds out test rows to judge; the student that is shipped can learn from them. Only a
few rows stay aside: validation rows, by which the best epoch is chosen, and as few test rows as the
data allow. There is no score of its own: the comparison's scores of the same arm, on fewer labels,
say what to expect.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from lupi.core import Task
from lupi.errors import LupiError
from lupi.files import read_json
from lupi.ship.pick import Judged, pick_run
from lupi.tasks.registry import build_task
from lupi.train.run import run
from lupi.train.settings import RunSettings

FOLDER = "refit"
VAL_FRACS = (0.1, 0.2)
TEST_FRACS = (0.01, 0.02, 0.05, 0.1, 0.2)
N_TESTS = (1, 2, 5, 10)


class Refitted(NamedTuple):
    """A student that was trained on all labels."""

    folder: Path
    """Of its run."""
    why: str
    """Which run of the comparison has the same settings, and why it was chosen."""
    judged: Judged
    """What the comparison found out about that run's arm."""
    n_rows: int
    """Training rows."""

    @property
    def about(self) -> str:
        """What was trained and what to expect, in one sentence."""
        cell, expected = self.judged.cell, ""
        more = self.n_rows - cell.size
        if cell.mean is not None:
            expected = f"; expect a test {self.judged.summary.metric} of about {cell.mean:.4g}"
            if cell.interval is not None:
                low, high = cell.interval
                expected += f" (95 % interval {low:.4g} to {high:.4g})"
            expected += f", as measured with {cell.size:,} labels"
        return f"trained on {self.n_rows:,} labels, {more:,} more than in the comparison{expected}"


def refit(
    comparison: Path,
    arm: str | None = None,
    seed: int = 0,
    on_epoch: Callable[[Mapping[str, Any]], None] = lambda row: None,
) -> Refitted:
    """Train an arm of a comparison on all labels; one that was trained before is only read.

    Args:
        comparison: Folder of a comparison.
        arm: Name of an arm; by default the one with the best validation scores.
        seed: Seed of the run.
        on_epoch: Called with each new row of metrics.
    """
    if not (comparison / "comparison.json").exists():
        raise LupiError(
            f"{comparison} is not the folder of a comparison: a student is trained on all rows "
            "with the settings that a comparison chose"
        )
    picked = pick_run(comparison, arm)
    path = picked.folder / "settings.json"
    before = RunSettings.parse(read_json(path), str(path))
    if before.task.name == "custom":
        raise LupiError(
            "a task of your own draws its rows itself: train its network on all of them instead"
        )
    task, n_rows = _largest(before)
    settings = before.changed(task=task, size=n_rows, seed=seed)
    folder = comparison / FOLDER / settings.run_id
    run(settings, folder, on_epoch)
    assert picked.judged is not None  # it is part of the comparison
    return Refitted(folder, picked.why, picked.judged, n_rows)


def _largest(settings: RunSettings) -> tuple[Any, int]:
    """Return the settings of the task that leave most rows for training, and how many."""
    for changes in _held_out(settings):
        task_settings = settings.task.model_copy(update=changes)
        try:
            task: Task = build_task(task_settings, settings.network)
            n_rows = task.n_rows
            task.splits(n_rows, settings.seed)
        except LupiError:
            continue
        return task_settings, n_rows
    return settings.task, build_task(settings.task, settings.network).n_rows


def _held_out(settings: RunSettings) -> Iterator[dict[str, Any]]:
    """Yield changes to the task that hold out few rows, the fewest first."""
    fields = type(settings.task).model_fields
    if "test_frac" in fields:
        for test in TEST_FRACS:
            for val in VAL_FRACS:
                yield {"val_frac": val, "test_frac": test}
    elif "n_test" in fields:
        n_val: int = getattr(settings.task, "n_val", 1)
        for n_test in N_TESTS:
            yield {"n_test": n_test, "n_val": max(1, n_val // 2), "n_train": None}
            yield {"n_test": n_test, "n_train": None}
