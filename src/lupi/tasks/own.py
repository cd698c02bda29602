"""A task that was given in Python: settings name it by its content, and this process knows it."""

import hashlib
from typing import Any

import torch
from torch import Tensor

from lupi.core import Batch, Split, Task
from lupi.errors import LupiError
from lupi.settings import Settings

_given: dict[str, Task] = {}


class OwnTaskSettings(Settings):
    """What says which task it is."""

    content: str
    """Fingerprint of rows and network, filled in by lupi: a changed task is another run."""


class OwnNetworkSettings(Settings):
    """Nothing: a task of one's own has its own network."""


class OwnTask:
    """Stands for the object in the registry; building it returns the object."""

    Settings = OwnTaskSettings
    Network = OwnNetworkSettings

    def __new__(cls, settings: OwnTaskSettings, network: OwnNetworkSettings) -> Any:
        """Return the task of these settings."""
        if settings.content not in _given:
            raise LupiError(
                "task.name: own stands for a task that was given to `lupi.compare` in Python; "
                "run that script again"
            )
        return _given[settings.content]


def give_task(task: Task, size: int, seed: int) -> dict[str, Any]:
    """Make a task known by its content; return the settings that name it.

    The content is that of a run's rows and network: rows of other sizes and seeds are taken to
    follow from the same data.
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
    _given[content] = task
    return {"name": "own", "content": content}


def _add_rows(digest: Any, split: Split) -> None:
    for batch in split.batches(1024):
        for part in _tensors(batch):
            digest.update(f"{part.dtype}{tuple(part.shape)}".encode())
            digest.update(part.detach().cpu().contiguous().numpy().tobytes())


def _tensors(batch: Batch) -> list[Tensor]:
    x = batch.x if isinstance(batch.x, tuple) else (batch.x,)
    return [part for part in (*x, batch.y, batch.xstar, batch.has_xstar) if part is not None]
