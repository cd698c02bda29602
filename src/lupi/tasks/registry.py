"""Tasks by name: those of lupi and of plug-ins."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lupi.core import Task
from lupi.errors import LupiError
from lupi.loaders.images.cache import OnDecoded
from lupi.plugins import in_lupi_paper, load_plugin, plugins
from lupi.settings import Settings, TaskSettings, format_value, unknown_name
from lupi.tasks.custom import CustomTask, CustomTaskSettings
from lupi.tasks.images.digits import DigitsTask
from lupi.tasks.images.image_files import (
    ImageFilesSettings,
    open_images,
    shard_images,
)
from lupi.tasks.images.image_folder import ImageFolderTask
from lupi.tasks.table import TableTask
from lupi.tasks.text.task import TextTask

TASKS: dict[str, Any] = {
    "digits": DigitsTask,
    "image-folder": ImageFolderTask,
    "table": TableTask,
    "text": TextTask,
    "custom": CustomTask,
}


def task_names() -> list[str]:
    """Return the names of all tasks."""
    return [*TASKS, *(name for name in plugins("lupi.tasks") if name not in TASKS)]


def find_task(name: str) -> Any:
    """Return a kind of task: what loads it, with `Settings` and `Network`."""
    if name in TASKS:
        return TASKS[name]
    if name in plugins("lupi.tasks"):
        return load_plugin(plugins("lupi.tasks")[name])
    hint = in_lupi_paper("lupi.tasks", name)
    raise LupiError(f"task.name: {hint or unknown_name('task', name, task_names())}")


def parse_task(raw: Any) -> TaskSettings:
    """Return the settings of a task, in the type that belongs to its name."""
    if not isinstance(raw, Mapping):
        raise LupiError(f"task: expected keys and values, got {format_value(raw)}")
    if "name" not in raw:
        raise LupiError(f"task.name: is required; known tasks: {', '.join(task_names())}")
    settings: TaskSettings = find_task(str(raw["name"])).Settings.parse(raw, "task")
    return settings


def parse_network(task: TaskSettings, raw: Any) -> Settings:
    """Return the settings of a task's network."""
    settings: Settings = find_task(task.name).Network.parse(raw, "network")
    return settings


def build_task(task: TaskSettings, network: Settings) -> Task:
    """Build a task from its settings."""
    built: Task = find_task(task.name)(task, network)
    return built


class TaskLoader:
    """Builds tasks, and keeps the data of the last one for tasks with another network."""

    def __init__(self) -> None:
        self._settings: TaskSettings | None = None
        self._task: Task | None = None

    def load(self, task: TaskSettings, network: Settings) -> Task:
        """Build a task from its settings."""
        if self._task is None or self._settings != task:
            self._task = None  # two datasets need not fit into memory
            self._task, self._settings = build_task(task, network), task
        if isinstance(task, CustomTaskSettings):  # the user's object has its own network
            return self._task
        return self._task.with_network(network)


def prepare_task(task: TaskSettings, on_decoded: OnDecoded) -> None:
    """Decode the images of a task, if it has any, so that building it is fast."""
    if isinstance(task, ImageFilesSettings):
        open_images(task, on_decoded)


def shard_task(
    task: TaskSettings, out: Path, shard_size: int, on_decoded: OnDecoded
) -> dict[str, Any]:
    """Write the images of a task to shards; return the description that is stored with them."""
    if not isinstance(task, ImageFilesSettings):
        raise LupiError(f"task.name: {task.name} has no images in files, as image-folder has")
    return shard_images(task, out, shard_size, on_decoded)
