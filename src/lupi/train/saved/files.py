"""What a training keeps in its folder while it goes on. Of several processes, the first writes."""

import time
from pathlib import Path
from typing import Any

from torch import Tensor

from lupi.core import Method
from lupi.errors import LupiError
from lupi.files import append_row, force_to_disk, read_rows, rewrite_rows
from lupi.train.parallel.processes import Processes
from lupi.train.saved.checkpoint import (
    helper_weights,
    load_state,
    load_weights,
    save_state,
    save_weights,
)

SECONDS_BETWEEN = 5.0
"""Between two checkpoints, at least: epochs of a small network take less time than writing one."""


class TrainingFiles:
    """metrics.jsonl and checkpoint/ of a run; what is read goes to all processes.

    A checkpoint has the rows and the best student of its epoch behind it, on the disk before it.
    """

    def __init__(self, folder: Path, processes: Processes) -> None:
        self._metrics = folder / "metrics.jsonl"
        self._last = folder / "checkpoint/last.safetensors"
        self._best = folder / "checkpoint/student.safetensors"
        self._helpers = folder / "checkpoint/method.safetensors"
        self._processes = processes
        self._found: list[tuple[Path, dict[str, Tensor]]] = []
        """The best student so far, with its noise, where it is not on the disk yet."""
        self._saved_at = time.monotonic()

    def resume(self) -> dict[str, Any] | None:
        """Return the last checkpoint, if there is one, and forget the rows that came after it."""
        saved = None
        if self._processes.rank == 0:
            self._metrics.parent.mkdir(parents=True, exist_ok=True)
            saved = load_state(self._last) if self._last.exists() else None
            at = (saved["state"]["attempt"], saved["state"]["epoch"]) if saved else (0, 0)
            found, torn = read_rows(self._metrics)
            rows = [row for row in found if {"attempt", "epoch"} <= row.keys()]
            past = [row for row in rows if (row["attempt"], row["epoch"]) <= at]
            if at[1] and [(row["attempt"], row["epoch"]) for row in past[-1:]] != [at]:
                raise LupiError(
                    f"{self._metrics} has lost rows that its checkpoint has behind it; delete the "
                    "folder of the run to start it again"
                )
            if found != past or torn:
                rewrite_rows(self._metrics, past)
        return self._processes.broadcast(saved)

    def append(self, row: dict[str, Any]) -> None:
        """Add the row of an epoch."""
        if self._processes.rank == 0:
            append_row(self._metrics, row)

    def save(
        self, state: dict[str, Any], method: Method, optimizer: Any = None, at_once: bool = False
    ) -> None:
        """Keep all that it takes to go on from here, unless that was done a moment ago."""
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
        """Keep the student, and perhaps what else the method has; on the disk with the state."""
        if self._processes.rank == 0:
            found = {self._best: method.net.state_dict()}
            if with_helpers:
                found[self._helpers] = helper_weights(method)
            self._found = [
                (path, {key: value.clone() for key, value in weights.items()})
                for path, weights in found.items()
            ]

    def _write_best(self) -> None:
        for path, weights in self._found:
            save_weights(path, weights)
        self._found = []

    def load_best(self, method: Method) -> None:
        """Give the student, and its noise, the weights of its best epoch."""
        writes = self._processes.rank == 0
        self._write_best()
        weights = load_weights(self._best) if writes else {}
        method.net.load_state_dict(self._processes.broadcast(weights))
        helpers = load_weights(self._helpers) if writes and self._helpers.exists() else {}
        method.load_state_dict(self._processes.broadcast(helpers), strict=False)

    def settle(self) -> None:
        """Let the rows outlive a power failure, too."""
        if self._processes.rank == 0:
            force_to_disk(self._metrics)

    def forget_best(self) -> None:
        """Remove the best student, of an attempt that failed."""
        if self._processes.rank == 0:
            self._found = []
            self._best.unlink(missing_ok=True)
            self._helpers.unlink(missing_ok=True)
