"""Tasks given as Python objects: settings identify them by content, in this process only."""

import hashlib
from typing import Any, Literal

import torch
from torch import Tensor

from lupi.core import Batch, Split, Task, TaskKind
from lupi.errors import LupiError
from lupi.settings import Settings, TaskSettings

_registered: dict[str, Task] = {}


class CustomTaskSettings(TaskSettings):
    """Settings that identify a task."""

    name: Literal["custom"] = "custom"
    content: str
    """Fingerprint of rows and network, filled in by lupi: a changed task is another run."""


class CustomNetworkSettings(Settings):
    """No settings: the task builds its own network."""


def _given(settings: CustomTaskSettings, network: CustomNetworkSettings) -> Task:
    """Return the task of these settings."""
    if settings.content not in _registered:
        raise LupiError(
            "task.name: custom stands for a task that was given to `lupi.compare` in Python; "
            "run that script again"
        )
    return _registered[settings.content]


CustomTask = TaskKind(CustomTaskSettings, CustomNetworkSettings, _given)


def register_task(task: Task, size: int, seed: int) -> dict[str, Any]:
    """Register a task by its content; return the settings that identify it.

    The content is that of the rows and the network of one run: rows of other sizes and seeds are
    assumed to come from the same data.
    """
    digest = hashlib.sha256()
    fitted = task.for_run(size, seed)
    splits = fitted.splits(size, seed)
    for split in (splits.train, splits.val, splits.test):
        _add_rows(digest, split)
    with torch.random.fork_rng(devices=[]):
        digest.update(repr(fitted.network()).encode())
    digest.update(repr(task.metric).encode())
    content = digest.hexdigest()[:12]
    _registered[content] = task
    return {"name": "custom", "content": content}


def _add_rows(digest: Any, split: Split) -> None:
    for batch in split.batches(1024):
        for part in _tensors(batch):
            digest.update(f"{part.dtype}{tuple(part.shape)}".encode())
            digest.update(part.detach().cpu().contiguous().numpy().tobytes())


def _tensors(batch: Batch) -> list[Tensor]:
    x = batch.x if isinstance(batch.x, tuple) else (batch.x,)
    return [part for part in (*x, batch.y, batch.xstar, batch.has_xstar) if part is not None]
