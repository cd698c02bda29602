"""Datasets of torch as a task."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset, TensorDataset

import lupi
from lupi.core import Control, Task
from lupi.errors import LupiError
from lupi.loaders.xstar.controls import control_maps


def mlp(n_outputs: int = 2) -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, n_outputs))


def rows(n: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x, xstar = (torch.randn(n, d, generator=generator) for d in (4, 3))
    return x, xstar, (x[:, 0] + xstar[:, 0] > 0).long()


def task(**changes: Any) -> Task:
    x, xstar, y = rows(60, 0)
    (val_x, _, val_y), (test_x, _, test_y) = rows(20, 1), rows(20, 2)
    given = {
        "train": TensorDataset(x, xstar, y),
        "val": TensorDataset(val_x, val_y),
        "test": TensorDataset(test_x, test_y),
        "network": mlp,
    }
    return lupi.dataset_task(**{**given, **changes})


def whole(split: Any) -> Any:
    return next(iter(split.batches(1000)))


def test_sizes_are_nested_and_seeds_draw_their_own_rows() -> None:
    made = task()
    small, large, other = (whole(made.splits(*of).train) for of in ((20, 0), (40, 0), (20, 1)))
    assert {tuple(r) for r in small.x.tolist()} < {tuple(r) for r in large.x.tolist()}
    assert not torch.equal(small.x, other.x)
    assert made.splits(20, 0).val.__len__() == 20
    assert whole(made.splits(20, 0).test).xstar is None


@pytest.mark.parametrize("control", ["shuffled", "constant", "random"])
def test_controls_change_xstar_alone(control: Control) -> None:
    real, changed = (whole(task().splits(30, 0, c).train) for c in ("real", control))
    assert torch.equal(real.x, changed.x)
    assert torch.equal(real.y, changed.y)
    assert not torch.isclose(real.xstar, changed.xstar).all(1).any()


def test_rows_without_xstar() -> None:
    x, xstar, y = rows(60, 0)
    some = [(x[i], xstar[i] if i % 2 else None, y[i]) for i in range(60)]
    train = whole(task(train=some).splits(60, 0).train)
    assert int(train.has_xstar.sum()) == 30
    assert not train.xstar[~train.has_xstar].any()
    assert int(whole(task(train=some).splits(60, 0, xstar_frac=0.5).train).has_xstar.sum()) == 15


def test_regression_takes_mean_and_variance() -> None:
    x, xstar, _ = rows(60, 0)
    pairs = TensorDataset(x, x[:, 0] * 5 + 100)
    made = task(
        train=TensorDataset(x, xstar, x[:, 0] * 5 + 100), val=pairs, test=pairs, kind="regression"
    )
    assert made.metric.name == "r2"
    assert abs(float(whole(made.splits(60, 0).train).y.mean())) < 0.1


def test_maps_over_places() -> None:
    class Images(Dataset[Any]):
        def __len__(self) -> int:
            return 24

        def __getitem__(self, i: int) -> Any:
            if i >= len(self):
                raise IndexError(i)
            mask = torch.zeros(1, 6, 6)
            mask[0, i % 6, i % 4] = 1
            return torch.randn(3, 6, 6), mask, i % 2

    def net() -> nn.Module:
        return nn.Sequential(nn.Conv2d(3, 4, 3), nn.Dropout(0.5), nn.Flatten(), nn.Linear(64, 2))

    pairs = [(torch.randn(3, 6, 6), i % 2) for i in range(8)]
    made = task(train=Images(), val=pairs, test=pairs, network=net)
    assert (made.xstar_kind, made.places, made.xstar_dim) == ("region", "pixels", 1)
    assert whole(made.splits(12, 0, "random").train).xstar.sum() == 12


def test_a_random_map_is_a_moved_one() -> None:
    maps = np.zeros((200, 1, 4, 4), dtype=np.float32)
    maps[:, 0, :2, :2] = 1
    moved = control_maps(maps, "random", 0)
    assert (moved.sum((1, 2, 3)) == 4).all()
    assert len({m.tobytes() for m in moved}) == 16
    assert np.array_equal(control_maps(maps, "real", 0), maps)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"network": lambda: mlp(3)}, r"gives \(2, 3\) for two rows; expected \(2, 2\)"),
        ({"network": lambda: 3}, "builds an nn.Module"),
        ({"train": [(1, 2)]}, r"expected rows of \(x, x\*, y\)"),
        ({"train": 3}, r"expected a dataset of \(x, x\*, y\)"),
        ({"test": [(torch.zeros(4), 0.5)]}, "classes are numbered 0, 1"),
        ({"test": [(torch.zeros(4), 0), (torch.zeros(5), 0)]}, "different shapes"),
        ({"train": [(torch.zeros(4), None, 0)]}, "no row has x"),
    ],
)
def test_mistakes(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(LupiError, match=message):
        task(**changes)


def test_no_oracle() -> None:
    with pytest.raises(LupiError, match="leave the oracle out"):
        task().splits(10, 0, reveal=True)
