"""Tasks by name."""

from typing import Any

from lupi.errors import LupiError
from lupi.settings import unknown_name
from lupi.tasks.digits import DigitsTask

TASKS = {"digits": DigitsTask}


def resolve_task(task: dict[str, Any], network: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """Validate the settings of a task and its network; return both with defaults filled in."""
    cls, options = _lookup(task)
    resolved = cls.Settings.parse(options, "task").resolved()
    return {"name": task["name"], **resolved}, cls.Network.parse(network, "network").resolved()


def build_task(task: dict[str, Any], network: dict[str, Any]) -> DigitsTask:
    """Build a task from its settings."""
    cls, options = _lookup(task)
    return cls(cls.Settings.parse(options, "task"), cls.Network.parse(network, "network"))


def _lookup(task: dict[str, Any]) -> tuple[type[DigitsTask], dict[str, Any]]:
    if "name" not in task:
        raise LupiError(f"task.name: is required; known tasks: {', '.join(TASKS)}")
    if task["name"] not in TASKS:
        raise LupiError(f"task.name: {unknown_name('task', str(task['name']), list(TASKS))}")
    return TASKS[task["name"]], {key: value for key, value in task.items() if key != "name"}
