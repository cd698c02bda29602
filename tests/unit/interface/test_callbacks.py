"""What is told of runs: to a function, to TensorBoard."""

from pathlib import Path
from typing import Any

import pytest

import lupi
from conftest import VectorTask
from lupi.errors import LupiError

FEW: dict[str, Any] = {
    "arms": ["het-dropout"],
    "sizes": [40],
    "seeds": 1,
    "changes": {"train.epochs": 2, "train.steps_per_epoch": 2},
    "quiet": True,
}


def test_a_callback_hears_of_every_run(tmp_path: Path) -> None:
    heard = []
    lupi.compare(
        VectorTask(),
        folder=tmp_path,
        callback=lambda run, event: heard.append((run.arm, run.seed, event.what)),
        **FEW,
    )
    arms = ("no-xstar", "het-dropout", "het-dropout/shuffled")
    assert heard == [(arm, 0, what) for arm in arms for what in ("started", "finished")]
    with pytest.raises(LupiError, match="either callback or tensorboard"):
        lupi.compare(VectorTask(), callback=print, tensorboard=True, **FEW)


def test_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    lupi.compare(VectorTask(), folder=tmp_path, tensorboard=True, **FEW)
    folders = {path.name: path for path in (tmp_path / "tensorboard").iterdir()}
    assert set(folders) == {
        "no-xstar, n = 40, seed 0",
        "het-dropout, n = 40, seed 0",
        "het-dropout-shuffled, n = 40, seed 0",
    }
    curves = EventAccumulator(str(folders["het-dropout, n = 40, seed 0"])).Reload()
    assert [point.step for point in curves.Scalars("val/accuracy")] == [1, 2]
    assert {"train/loss", "lr", "result/test/accuracy"} <= set(curves.Tags()["scalars"])
    assert any(tag.startswith("noise/") for tag in curves.Tags()["scalars"])


def test_without_tensorboard_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(LupiError, match=r"pip install 'lupi\[tensorboard\]'"):
        lupi.compare(VectorTask(), folder=tmp_path, tensorboard=True, **FEW)
