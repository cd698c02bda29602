"""Read a finished run: its settings, its task and its trained student."""

from dataclasses import dataclass
from pathlib import Path

from torch import nn

from lupi.core import Method, Task
from lupi.errors import LupiError
from lupi.files import read_json
from lupi.methods.registry import build_method
from lupi.records import HELPERS, STUDENT, find_run
from lupi.tasks.registry import build_task
from lupi.train.checkpoint import helper_weights, load_weights
from lupi.train.settings import RunSettings


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A finished run and its student."""

    folder: Path
    settings: RunSettings
    task: Task
    method: Method
    """Method with the student of its best epoch, in `eval()`; helper networks are not loaded."""

    @property
    def student(self) -> nn.Module:
        """Trained network, without any part of the method."""
        return self.method.student()

    def load_helpers(self) -> None:
        """Load the helper networks of the best epoch, too."""
        path = self.folder / HELPERS
        if not path.exists():
            raise LupiError(
                f"{self.folder} keeps no weights of {self.settings.method}'s own ({HELPERS}): "
                "either the method has no noise that x* sets, or the run is older than this "
                "record. Train it again in another folder (`--out`) to analyse it"
            )
        own, expected = load_weights(path), helper_weights(self.method)
        if {k: w.shape for k, w in own.items()} != {k: w.shape for k, w in expected.items()}:
            raise LupiError(f"{path} holds other weights than the settings of the run ask for")
        self.method.load_state_dict(own, strict=False)


def read_finished(folder: Path) -> FinishedRun:
    """Read a finished run from its folder, or from a folder that contains only this run."""
    folder = find_run(folder)
    if not (folder / STUDENT).exists():
        raise LupiError(
            f"{folder} has no student: the run diverged before its first validation, or the "
            "method is a classical model"
        )
    settings = RunSettings.parse(read_json(folder / "settings.json"), str(folder / "settings.json"))
    task = build_task(settings.task, settings.network).for_run(settings.size, settings.seed)
    method = build_method(settings.method, settings.settings, task.network(), task)
    try:
        method.net.load_state_dict(load_weights(folder / STUDENT))
    except RuntimeError:
        raise LupiError(f"{folder / STUDENT} holds another network than the settings say") from None
    method.eval()
    return FinishedRun(folder, settings, task, method)
