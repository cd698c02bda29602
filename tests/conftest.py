"""Small tasks that every test may use, and the command inside the process."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lupi.core import Batch, Control, Outcome, Places, Rows, RunRows, Split, Splits, Task, XstarKind
from lupi.design import Design
from lupi.loaders.division import GivenParts
from lupi.loaders.images.digits import DigitsSettings
from lupi.loaders.tables.vectors import VectorSplit
from lupi.loaders.xstar.controls import control_vectors
from lupi.records import Metric
from lupi.settings import Settings
from lupi.subsets import rows_with_xstar
from lupi.tasks.images.digits import DigitsTask
from lupi.tasks.images.network import ImageNetworkSettings
from the_command import inside


class TwoClasses(Outcome):
    """Two classes, scored by accuracy alone."""

    __slots__ = ()

    def metrics(self, output: Tensor, y: Tensor, weights: Tensor | None = None) -> dict[str, float]:
        return {"accuracy": (output.argmax(1) == y).float().mean().item()}

    def trivial(self, train: Split, test: Split) -> dict[str, float]:
        return {"accuracy": 0.5}


class Unread(Rows, RunRows):
    """Rows of a task that makes splits, network and example itself."""

    def _not_here(self, *given: Any, **named: Any) -> Any:
        raise NotImplementedError

    fit = has_xstar = split = network = example = _not_here


class VectorTask(Task):
    """Two classes told apart by the sum of x; x* is the margin and a distraction.

    Tests derive tasks with another network, outcome or kind of x*.
    """

    def __init__(
        self,
        outcome: Outcome | None = None,
        xstar_kind: XstarKind = "vector",
        places: Places | None = None,
        xstar_dim: int = 2,
    ) -> None:
        zeros = np.zeros(1000, dtype=np.int64)
        division = GivenParts({"train": 1000, "val": 100, "test": 100}, lambda seed: zeros)
        rows, metric, settings = Unread(), Metric("accuracy"), Settings()
        facts = (outcome or TwoClasses(("0", "1")), metric, settings, xstar_kind, places, xstar_dim)
        super().__init__(rows, division, Design(1000, "fixed"), *facts, run=rows)

    def for_run(self, size: int, seed: int) -> Task:
        return self

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


def digits_task(**network: Any) -> Task:
    task = DigitsTask(DigitsSettings(), ImageNetworkSettings(**{"width": 4, **network}))
    return task.for_run(100, 0)


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
