from pathlib import Path

import pytest
import torch
from torch import nn

from lupi.errors import LupiError
from lupi.train.checkpoint import load_state, load_weights, save_state, save_weights


def test_state_of_an_optimizer_comes_back(tmp_path: Path) -> None:
    net = nn.Linear(3, 2)
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.randn(4, 3)).sum().backward()
    optimizer.step()
    state = {"net": net.state_dict(), "optimizer": optimizer.state_dict(), "scores": [0.5, 1.0]}
    save_state(tmp_path / "last.safetensors", state)
    back = load_state(tmp_path / "last.safetensors")
    assert back["scores"] == [0.5, 1.0]
    assert torch.equal(back["net"]["weight"], net.weight)
    twin = torch.optim.Adam(nn.Linear(3, 2).parameters())
    twin.load_state_dict(back["optimizer"])
    for mine, theirs in zip(
        optimizer.state_dict()["state"].values(), twin.state_dict()["state"].values(), strict=True
    ):
        assert mine.keys() == theirs.keys()
        assert all(torch.equal(mine[key], theirs[key]) for key in mine)


def test_anyone_may_read_what_others_files_let_them(tmp_path: Path) -> None:
    """safetensors gives its files mode 0600."""
    (tmp_path / "other").touch()
    save_weights(tmp_path / "a.safetensors", {"w": torch.zeros(2)})
    assert (tmp_path / "a.safetensors").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_tensors_that_share_memory_are_kept_apart(tmp_path: Path) -> None:
    shared = torch.arange(3.0)
    save_weights(tmp_path / "w.safetensors", {"a": shared, "b": shared})
    assert torch.equal(load_weights(tmp_path / "w.safetensors")["b"], shared)


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", b"\x80\x04pickle"])
def test_foreign_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "last.safetensors"
    path.write_bytes(content)
    with pytest.raises(LupiError, match="can't be read as a checkpoint"):
        load_state(path)
    with pytest.raises(LupiError, match="can't be read as weights"):
        load_weights(path)


def test_weights_without_state_are_refused_as_a_checkpoint(tmp_path: Path) -> None:
    save_weights(tmp_path / "w.safetensors", {"a": torch.zeros(1)})
    with pytest.raises(LupiError, match="can't be read as a checkpoint"):
        load_state(tmp_path / "w.safetensors")
