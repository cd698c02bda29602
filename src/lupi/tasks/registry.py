"""Tasks by name."""

import copy
from pathlib import Path
from typing import Any

from lupi.core import Task
from lupi.data.images.writer import OnDecoded
from lupi.errors import LupiError
from lupi.settings import unknown_name
from lupi.tasks.images.digits import DigitsTask
from lupi.tasks.images.image_files import ImageFilesTask, open_images, shard_images
from lupi.tasks.images.image_folder import ImageFolderTask
from lupi.tasks.images.imagenet import ImagenetTask
from lupi.tasks.images.tiny_imagenet import TinyImagenetTask
from lupi.tasks.own import OwnTask
from lupi.tasks.table import TableTask
from lupi.tasks.text.task import TextTask
from lupi.tasks.translation.task import TranslationTask

TASKS: dict[str, type[Any]] = {
    "digits": DigitsTask,
    "tiny-imagenet": TinyImagenetTask,
    "imagenet": ImagenetTask,
    "image-folder": ImageFolderTask,
    "table": TableTask,
    "text": TextTask,
    "translation": TranslationTask,
    "own": OwnTask,
}


def resolve_task(task: dict[str, Any], network: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """Validate the settings of a task and its network; return both with defaults filled in."""
    cls, options = _lookup(task)
    resolved = cls.Settings.parse(options, "task").resolved()
    return {"name": task["name"], **resolved}, cls.Network.parse(network, "network").resolved()


def unread_task(task: dict[str, Any]) -> dict[str, Any]:
    """Return settings of a task that resolve without a look at its images."""
    cls, _ = _lookup(task)
    return {"content": "not read", **task} if issubclass(cls, ImageFilesTask) else task


def build_task(task: dict[str, Any], network: dict[str, Any]) -> Task:
    """Build a task from its settings."""
    cls, options = _lookup(task)
    built: Task = cls(cls.Settings.parse(options, "task"), cls.Network.parse(network, "network"))
    return built


class TaskLoader:
    """Builds tasks, and keeps the data of the last one for tasks with another network."""

    def __init__(self) -> None:
        self._settings: dict[str, Any] | None = None
        self._task: Task | None = None

    def load(self, task: dict[str, Any], network: dict[str, Any]) -> Task:
        """Build a task from its settings."""
        if self._task is None or self._settings != task:
            self._task = None  # two data sets need not fit into memory
            self._task, self._settings = build_task(task, network), task
        if not network:  # a task of one's own brings its network
            return self._task
        other: Any = copy.copy(self._task)
        other.network_settings = type(other.network_settings).parse(network, "network")
        result: Task = other
        return result


def prepare_task(task: dict[str, Any], on_decoded: OnDecoded) -> list[str]:
    """Decode the images of a task now, so that it is quickly built; say what was found."""
    cls, options = _lookup(task)
    if not issubclass(cls, ImageFilesTask):
        return []
    loaded = open_images(cls.Settings.parse(options, "task"), on_decoded)
    lines = loaded.findings.lines()
    return [*lines, f"every file is named in {loaded.about}"] if lines else []


def shard_task(
    task: dict[str, Any], out: Path, shard_size: int, on_decoded: OnDecoded
) -> dict[str, Any]:
    """Write the images of a task into shards; return what is said of them there."""
    cls, options = _lookup(task)
    if not issubclass(cls, ImageFilesTask):
        names = [name for name, cls in TASKS.items() if issubclass(cls, ImageFilesTask)]
        raise LupiError(
            f"task.name: {task['name']} has no images in files; {', '.join(names)} have"
        )
    return shard_images(cls.Settings.parse(options, "task"), out, shard_size, on_decoded)


def _lookup(task: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    if "name" not in task:
        raise LupiError(f"task.name: is required; known tasks: {', '.join(TASKS)}")
    if not isinstance(task["name"], str) or task["name"] not in TASKS:
        raise LupiError(f"task.name: {unknown_name('task', str(task['name']), list(TASKS))}")
    return TASKS[task["name"]], {key: value for key, value in task.items() if key != "name"}
