"""Report events of runs to a callback, or write learning curves for TensorBoard."""

from collections.abc import Callable, Generator, Iterable, Mapping
from pathlib import Path
from typing import Any

from lupi.comparison.jobs import Event
from lupi.errors import LupiError
from lupi.files import read_rows
from lupi.interface.console import print_message
from lupi.records import PlannedRun

Callback = Callable[[PlannedRun, Event], None]
"""Called with a run (`arm`, `size`, `seed`, `run_id`) and an event: `what` is started, epoch,
finished or failed, `content` is a row of metrics, a result, or an error."""


def notify(
    events: Iterable[Event], runs: Mapping[str, PlannedRun], callback: Callback
) -> Generator[Event]:
    """Yield events, after passing each to a callback."""
    for event in events:
        callback(runs[event.run_id], event)
        yield event


class TensorBoardCurves:
    """Writes the learning curves of runs for TensorBoard, one folder per run, and says where.

    Args:
        records: Folder of the comparison; the curves are written to `tensorboard/` there.
    """

    def __init__(self, records: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise LupiError(
                "--tensorboard needs TensorBoard: pip install 'lupi[tensorboard]'"
            ) from None
        self._open, self._records, self._folder = SummaryWriter, records, records / "tensorboard"
        print_message(f"learning curves: tensorboard --logdir {self._folder}")
        self._writers: dict[str, Any] = {}
        self._written: set[tuple[str, int, int]] = set()

    def __call__(self, run: PlannedRun, event: Event) -> None:
        """Add an event to the curves of its run."""
        if event.what == "epoch":
            self._write(run, event.content)
        elif event.what == "finished":
            # Epochs of other machines, or before this process, are on disk only.
            for row in read_rows(self._records / run.run_id / "metrics.jsonl")[0]:
                self._write(run, row)
            for split, scores in event.content["metrics"].items():
                for name, value in scores.items():
                    self._writer(run).add_scalar(f"result/{split}/{name}", value, 0)
        if event.what in ("finished", "failed") and run.run_id in self._writers:
            self._writers.pop(run.run_id).close()

    def _write(self, run: PlannedRun, row: Mapping[str, Any]) -> None:
        epoch = int(row["epoch"])
        key = (run.run_id, int(row["attempt"]), epoch)
        if key in self._written:
            return
        self._written.add(key)
        sites = {f"noise/{site}": values for site, values in (row["sites"] or {}).items()}
        parts = {"train": row["train"], "val": row["val"], **sites, "": {"lr": row["lr"]}}
        for part, values in parts.items():
            for name, value in (values or {}).items():
                tag = f"{part}/{name}" if part else name
                self._writer(run).add_scalar(tag, value, epoch)

    def _writer(self, run: PlannedRun) -> Any:
        if run.run_id not in self._writers:
            name = f"{run.arm.replace('/', '-')}, n = {run.size}, seed {run.seed}"
            self._writers[run.run_id] = self._open(str(self._folder / name))
        return self._writers[run.run_id]
