"""Small tasks that every test may use, and the command inside the process."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lupi.core import Batch, Control, GivenRows, OutputKind, Split, Splits, XstarKind
from lupi.loaders.images.digits import DigitsSettings
from lupi.loaders.subsets import rows_with_xstar
from lupi.loaders.tables.vectors import VectorSplit
from lupi.loaders.xstar.controls import control_vectors
from lupi.records import Metric
from lupi.tasks.images.digits import DigitsTask
from lupi.tasks.images.network import ImageNetworkSettings
from lupi.tasks.task import DataTask
from the_command import inside


class VectorTask(GivenRows):
    """Two classes told apart by the sum of x; x* is the margin and a distraction."""

    metric = Metric("accuracy")
    xstar_kind: XstarKind = "vector"
    xstar_dim = 2
    output_kind: OutputKind = "classes"
    n_outputs = 2
    n_rows = 1000

    def splits(
        self,
        size: int,
        seed: int,
        control: Control = "real",
        xstar_frac: float = 1.0,
        reveal: bool = False,
    ) -> Splits:
        rng = np.random.default_rng(seed)
        x = torch.from_numpy(rng.normal(size=(size + 200, 6)).astype(np.float32))
        margin = x.sum(1)
        noise = torch.from_numpy(rng.normal(size=len(x)).astype(np.float32))
        every = torch.stack([margin.abs(), noise], 1)
        xstar = torch.from_numpy(control_vectors(every[:size].numpy(), control, seed))
        has = torch.from_numpy(rows_with_xstar(size, xstar_frac, seed))
        y = (margin > 0).long()

        def held_out(rows: slice) -> VectorSplit:
            shown = (every[rows], torch.ones(100, dtype=torch.bool)) if reveal else ()
            return VectorSplit(Batch(x[rows], y[rows], *shown))

        return Splits(
            VectorSplit(Batch(x[:size], y[:size], xstar, has)),
            held_out(slice(size, size + 100)),
            held_out(slice(size + 100, None)),
        )

    def network(self) -> nn.Module:
        return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 2))

    def example(self) -> Tensor:
        return torch.zeros(2, 6)

    def example_loss(self, output: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(output, y, reduction="none")

    def metrics(self, output: Tensor, y: Tensor, weights: Tensor | None = None) -> dict[str, float]:
        return {"accuracy": (output.argmax(1) == y).float().mean().item()}

    def trivial(self, train: Split, test: Split) -> dict[str, float]:
        return {"accuracy": 0.5}

    def is_uninformative(self, output: Tensor) -> bool:
        return bool(output.softmax(1).std(0).max() < 1e-3)


def digits_task(**network: Any) -> DataTask:
    return DigitsTask(DigitsSettings(), ImageNetworkSettings(**{"width": 4, **network}))


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)


@pytest.fixture
def few_simulations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans that are less sure and take little time."""
    monkeypatch.setattr("lupi.verdict.planning.N_SIMULATIONS", 80)


Here = Callable[..., tuple[int, str, str]]
"""Arguments to exit code, stdout and stderr."""


@pytest.fixture(autouse=True)
def nothing_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one test allows, the next one does not."""
    monkeypatch.setattr("lupi.permission._allowed", set())


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    """The command inside this process, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return inside
