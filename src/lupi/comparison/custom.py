"""Default comparison of a task that is given as a Python object."""

from typing import Any

from lupi.comparison.defaults import default_sizes
from lupi.comparison.table import LARGEST_SIZE, TRAIN
from lupi.core import Task
from lupi.tasks.custom import register_task

ARMS: dict[str, dict[str, Any]] = {
    "no-xstar": {"method": "no-xstar"},
    "gaussian-dropout": {"method": "gaussian-dropout", "settings": {"variance": 1.0}},
    "het-dropout": {"method": "het-dropout", "controls": ["shuffled"]},
}


def custom_comparison(task: Task, sizes: list[int] | None = None) -> dict[str, Any]:
    """Return the raw settings of a comparison on a user's task."""
    sizes = sizes or default_sizes(task.n_rows, LARGEST_SIZE)
    named = register_task(task, max(sizes), 0)
    return {
        "name": f"custom-{named['content'][:8]}",
        "task": named,
        "train": dict(TRAIN),
        "arms": {name: dict(arm) for name, arm in ARMS.items()},
        "sizes": sizes,
        "seeds": 10,
    }
