"""A method with a head of its own, in one file: it trains, loads and is exported."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn

from lupi.core import Batch, Losses, Method
from lupi.methods.registry import methods
from lupi.settings import Settings
from lupi.ship.export import Format, export
from lupi.ship.student import load_student
from lupi.train.finished import read_finished
from made_students import table_run


class ScaledSettings(Settings):
    """The width of the added layer."""

    n_hidden: int = 5


class ScaledStudent(nn.Module):
    """A network whose output another small network on its own output scales."""

    def __init__(self, net: nn.Module, n_hidden: int) -> None:
        super().__init__()
        self.net = net
        n_outputs = [m for m in net.modules() if isinstance(m, nn.Linear)][-1].out_features
        hidden = nn.Linear(n_outputs, n_hidden)
        self.scale = nn.Sequential(hidden, nn.Tanh(), nn.Linear(n_hidden, 1))

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.net(x)
        scaled: Tensor = output * (1 + self.scale(output))
        return scaled


class Scaled(Method):
    """The plain model with a head of its own."""

    name = "scaled"
    summary = "a head of its own"
    uses_xstar = False
    extends_student = True
    Settings = ScaledSettings

    @classmethod
    def extend(
        cls, net: nn.Module, network: Callable[[], nn.Module], settings: ScaledSettings
    ) -> nn.Module:
        return ScaledStudent(net, settings.n_hidden)

    def loss(self, batch: Batch) -> Losses:
        return {"task": self.task_loss(self.net(batch.x), batch)}


@pytest.mark.parametrize("format_", ["torch", "onnx"])
def test_its_student_is_exported_as_it_is(
    format_: Format, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if format_ == "onnx":
        pytest.importorskip("onnxruntime")
    known = {**methods(), "scaled": Scaled}
    for place in ("lupi.methods.registry.methods", "lupi.train.learners.methods"):
        monkeypatch.setattr(place, lambda: known)
    folder = table_run(tmp_path, "late", "scaled")
    export(folder, tmp_path / "out", format_)
    frame = pd.read_csv(tmp_path / "deliveries.csv")
    expected = read_finished(folder).method.eval()
    assert isinstance(expected.net, ScaledStudent)
    for place_ in (folder, tmp_path / "out"):
        student = load_student(place_)
        x = student.encode(frame)
        with torch.no_grad():
            assert np.allclose(student.outputs(x), expected.predict(x), atol=1e-5)
