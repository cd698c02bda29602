"""What a training keeps in its folder while it goes on. Of several processes, the first writes."""

from pathlib import Path
from typing import Any

from lupi.core import Method
from lupi.errors import LupiError
from lupi.files import append_row, read_rows, rewrite_rows
from lupi.train.parallel.processes import Processes
from lupi.train.saved.checkpoint import (
    helper_weights,
    load_state,
    load_weights,
    save_state,
    save_weights,
)


class TrainingFiles:
    """metrics.jsonl and checkpoint/ of a run; what is read goes to all processes."""

    def __init__(self, folder: Path, processes: Processes) -> None:
        self._metrics = folder / "metrics.jsonl"
        self._last = folder / "checkpoint/last.safetensors"
        self._best = folder / "checkpoint/student.safetensors"
        self._helpers = folder / "checkpoint/method.safetensors"
        self._processes = processes

    def resume(self) -> dict[str, Any] | None:
        """Return the last checkpoint, if there is one, and forget the rows that came after it."""
        saved = None
        if self._processes.rank == 0:
            saved = load_state(self._last) if self._last.exists() else None
            at = (saved["state"]["attempt"], saved["state"]["epoch"]) if saved else (0, 0)
            rows = [
                row for row in read_rows(self._metrics)[0] if {"attempt", "epoch"} <= row.keys()
            ]
            past = [row for row in rows if (row["attempt"], row["epoch"]) <= at]
            if at[1] and [(row["attempt"], row["epoch"]) for row in past[-1:]] != [at]:
                raise LupiError(
                    f"{self._metrics} has lost rows that its checkpoint has behind it; delete the "
                    "folder of the run to start it again"
                )
            rewrite_rows(self._metrics, past)
        return self._processes.broadcast(saved)

    def append(self, row: dict[str, Any]) -> None:
        """Add the row of an epoch."""
        if self._processes.rank == 0:
            append_row(self._metrics, row)

    def save(self, state: dict[str, Any], method: Method, optimizer: Any = None) -> None:
        """Keep all that it takes to go on from here."""
        if self._processes.rank == 0:
            document = {
                "state": state,
                "method": method.state_dict(),
                "optimizer": optimizer.state_dict() if optimizer else None,
            }
            save_state(self._last, document)

    def save_best(self, method: Method, with_helpers: bool) -> None:
        """Keep the student, and perhaps what else the method has."""
        if self._processes.rank == 0:
            save_weights(self._best, method.net.state_dict())
            if with_helpers:
                save_weights(self._helpers, helper_weights(method))

    def load_best(self, method: Method) -> None:
        """Give the student, and its noise, the weights of its best epoch."""
        writes = self._processes.rank == 0
        weights = load_weights(self._best) if writes else {}
        method.net.load_state_dict(self._processes.broadcast(weights))
        helpers = load_weights(self._helpers) if writes and self._helpers.exists() else {}
        method.load_state_dict(self._processes.broadcast(helpers), strict=False)

    def forget_best(self) -> None:
        """Remove the best student, of an attempt that failed."""
        if self._processes.rank == 0:
            self._best.unlink(missing_ok=True)
            self._helpers.unlink(missing_ok=True)
