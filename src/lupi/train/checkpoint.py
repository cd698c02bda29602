"""What a training keeps in its folder while it runs: rows of metrics, checkpoints, best student.

Checkpoints are safetensors: tensors and plain values only, so that loading runs no code.
"""

import hashlib
import json
import math
import time
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from lupi.core import Method
from lupi.files import (
    DamagedRecordError,
    append_row,
    force_to_disk,
    read_rows,
    rewrite_rows,
    write_whole,
)
from lupi.limits import check_regular
from lupi.train.processes import Processes

SECONDS_BETWEEN = 5.0
"""Minimum time between two checkpoints: an epoch of a small network takes less time than one."""


class TrainingFiles:
    """metrics.jsonl and checkpoint/ of a run. The first process writes; all get what is read.

    Rows and best student are on the disk before the checkpoint that belongs to them.
    """

    def __init__(self, folder: Path, processes: Processes) -> None:
        self._metrics = folder / "metrics.jsonl"
        self._last = folder / "checkpoint/last.safetensors"
        self._best = folder / "checkpoint/student.safetensors"
        self._helpers = folder / "checkpoint/method.safetensors"
        self._processes = processes
        self._best_weights: list[tuple[Path, dict[str, Tensor]]] = []
        """Best student so far, with its noise, until it is written to disk."""
        self._saved_at = time.monotonic()

    def resume(self) -> dict[str, Any] | None:
        """Return the last checkpoint, or None, and drop the rows that came after it."""
        saved = None
        if self._processes.rank == 0:
            self._metrics.parent.mkdir(parents=True, exist_ok=True)
            saved = load_state(self._last) if self._last.exists() else None
            at = (saved["state"]["attempt"], saved["state"]["epoch"]) if saved else (0, 0)
            written, warnings = read_rows(self._metrics)
            if written:  # it was stopped: keep its next epoch at once, lest it stops there forever
                self._saved_at = -math.inf
            rows = [row for row in written if {"attempt", "epoch"} <= row.keys()]
            past = [row for row in rows if (row["attempt"], row["epoch"]) <= at]
            places = [(0, 0), *((row["attempt"], row["epoch"]) for row in past)]
            gaps = [b for a, b in pairwise(places) if b not in ((a[0], a[1] + 1), (a[0] + 1, 1))]
            if at[1] and (gaps or places[-1] != at):
                raise DamagedRecordError(f"{self._metrics} has lost rows before its checkpoint")
            if written != past or warnings:
                rewrite_rows(self._metrics, past)
        return self._processes.broadcast(saved)

    def append(self, row: dict[str, Any]) -> None:
        """Add the row of an epoch."""
        if self._processes.rank == 0:
            append_row(self._metrics, row)

    def save(
        self, state: dict[str, Any], method: Method, optimizer: Any = None, at_once: bool = False
    ) -> None:
        """Save all that is needed to resume, unless that was done a moment ago."""
        if self._processes.rank > 0:
            return
        if not at_once and time.monotonic() - self._saved_at < SECONDS_BETWEEN:
            return
        self._write_best()
        force_to_disk(self._metrics)
        document = {
            "state": state,
            "method": method.state_dict(),
            "optimizer": optimizer.state_dict() if optimizer else None,
        }
        save_state(self._last, document)
        self._saved_at = time.monotonic()

    def save_best(self, method: Method, with_helpers: bool) -> None:
        """Keep the student (and helper networks), to be written with the next checkpoint."""
        if self._processes.rank == 0:
            weights = {self._best: method.net.state_dict()}
            if with_helpers:
                weights[self._helpers] = helper_weights(method)
            self._best_weights = [
                (path, {key: value.clone() for key, value in state.items()})
                for path, state in weights.items()
            ]

    def _write_best(self) -> None:
        for path, weights in self._best_weights:
            save_weights(path, weights)
        self._best_weights = []

    def load_best(self, method: Method) -> None:
        """Load the weights of the best epoch into the student and its noise."""
        writes = self._processes.rank == 0
        self._write_best()
        weights = load_weights(self._best) if writes else {}
        method.net.load_state_dict(self._processes.broadcast(weights))
        helpers = load_weights(self._helpers) if writes and self._helpers.exists() else {}
        method.load_state_dict(self._processes.broadcast(helpers), strict=False)

    def flush(self) -> None:
        """Write the rows to disk, so that they survive a power failure."""
        if self._processes.rank == 0:
            force_to_disk(self._metrics)

    def forget_best(self) -> None:
        """Remove the best student of an attempt that failed."""
        if self._processes.rank == 0:
            self._best_weights = []
            self._best.unlink(missing_ok=True)
            self._helpers.unlink(missing_ok=True)


def save_weights(
    path: Path, weights: Mapping[str, Tensor], metadata: Mapping[str, str] = {}
) -> None:
    """Write a state dict whole, with a checksum: damage would go unnoticed as wrong numbers."""
    copies = {key: value.detach().cpu().contiguous().clone() for key, value in weights.items()}
    metadata = {**metadata, "sha256": _checksum(copies, metadata)}

    def write(temporary: Path) -> None:
        temporary.touch()
        mode = temporary.stat().st_mode  # as the user's other files; safetensors makes it private
        try:
            save_file(copies, temporary, metadata=metadata)
        except SafetensorError as error:  # the disk is full
            raise OSError(f"{path} can't be written: {error}") from None
        temporary.chmod(mode)

    write_whole(path, write)


def load_weights(path: Path) -> dict[str, Tensor]:
    """Read a state dict."""
    try:
        return _load(path)[0]
    except (OSError, SafetensorError, ValueError) as error:
        raise DamagedRecordError(f"{path} can't be read as weights: {error}") from None


def helper_weights(method: Method) -> dict[str, Tensor]:
    """Return the weights of a method without the student, whose file never contains them."""
    weights = method.state_dict()
    return {key: value for key, value in weights.items() if not key.startswith("net.")}


def save_state(path: Path, state: dict[str, Any]) -> None:
    """Write a nested state of dicts, lists, tensors and plain values."""
    tensors: dict[str, Tensor] = {}
    skeleton = _take_tensors_out(state, "", tensors)
    save_weights(path, tensors, {"state": json.dumps(skeleton)})


def load_state(path: Path) -> dict[str, Any]:
    """Read what `save_state` wrote."""
    try:
        tensors, metadata = _load(path)
        state: dict[str, Any] = _put_tensors_back(json.loads(metadata["state"]), tensors)
    except (OSError, SafetensorError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise DamagedRecordError(f"{path} can't be read as a checkpoint: {error}") from None
    return state


def _load(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read tensors and metadata. Files that others wrote may have no checksum."""
    check_regular(path)
    with safe_open(path, framework="pt") as file:
        metadata: dict[str, str] = file.metadata() or {}
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    own = {key: value for key, value in metadata.items() if key != "sha256"}
    if metadata.get("sha256") not in (None, _checksum(tensors, own)):
        raise ValueError("it is damaged: its SHA-256 is not the one it was written with")
    return tensors, own


def _checksum(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    digest = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
    for key in sorted(tensors):
        tensor = tensors[key]
        digest.update(f"{key} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _take_tensors_out(node: Any, path: str, tensors: dict[str, Tensor]) -> Any:
    """Replace tensors by references, and dicts by lists of pairs, as JSON keys are strings."""
    if isinstance(node, Tensor):
        tensors[path] = node
        return {"tensor": path}
    if isinstance(node, dict):
        pairs = [
            [key, _take_tensors_out(value, f"{path}/{key}", tensors)] for key, value in node.items()
        ]
        return {"dict": pairs}
    if isinstance(node, (list, tuple)):
        return {"list": [_take_tensors_out(v, f"{path}/{i}", tensors) for i, v in enumerate(node)]}
    return node


def _put_tensors_back(node: Any, tensors: dict[str, Tensor]) -> Any:
    if not isinstance(node, dict):
        return node
    if "tensor" in node:
        return tensors[node["tensor"]]
    if "dict" in node:
        return {key: _put_tensors_back(value, tensors) for key, value in node["dict"]}
    return [_put_tensors_back(value, tensors) for value in node["list"]]
