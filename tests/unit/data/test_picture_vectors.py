from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from lupi.data import picture_vectors
from lupi.data.picture_vectors import list_pictures, write_vectors
from lupi.errors import LupiError
from made_pictures import save_picture


def mean_colour(pictures: Tensor) -> Tensor:
    assert pictures.dtype == torch.uint8
    return pictures.float().mean((2, 3))


def make_folder(folder: Path, n: int = 20) -> Path:
    for i in range(n):
        save_picture(folder / f"{i % 2}/{i:02}.jpg", size=(40, 30), box=(0, 0, 2 * i, 30), seed=i)
    return folder


def test_each_picture_has_its_vector(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "pictures")
    (folder / "notes.txt").write_text("no picture")
    names = list_pictures(folder)
    assert len(names) == 20
    (folder / "0/broken.png").write_bytes(b"nothing")
    out = tmp_path / "f.npz"
    work = write_vectors(folder, list_pictures(folder), mean_colour, 16, "mean", out)
    problems = [problem for problem in work if problem]
    assert problems[0].startswith("0/broken.png: unreadable picture")
    with np.load(out) as arrays:
        assert arrays["files"].tolist() == names
        red = dict(zip(names, arrays["features"][:, 0], strict=True))
    assert red["1/19.jpg"] > red["0/10.jpg"] > red["0/00.jpg"]


def test_stopped_work_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture_vectors, "SAVED_EVERY", 8)
    monkeypatch.setattr(picture_vectors, "AT_ONCE", 4)
    folder, out = make_folder(tmp_path / "pictures"), tmp_path / "f.npz"
    names = list_pictures(folder)
    seen: list[int] = []

    def counting(pictures: Tensor) -> Tensor:
        seen.append(len(pictures))
        return mean_colour(pictures)

    work = write_vectors(folder, names, counting, 16, "mean", out)
    for _ in range(14):
        next(work)
    work.close()
    list(write_vectors(folder, names, counting, 16, "mean", out))
    assert sum(seen) == 12 + (20 - 8)  # what was not saved came again
    with np.load(out) as arrays:
        assert arrays["files"].tolist() == names
    with pytest.raises(LupiError, match="has vectors by mean, not max"):
        list(write_vectors(folder, names, counting, 16, "max", out))


def test_folders_without_pictures(tmp_path: Path) -> None:
    with pytest.raises(LupiError, match="has no pictures in it"):
        list_pictures(tmp_path)
    with pytest.raises(LupiError, match="is not a folder"):
        list_pictures(tmp_path / "none")
    (tmp_path / "a.jpg").write_bytes(b"")
    with pytest.raises(LupiError, match="none of the pictures"):
        list(write_vectors(tmp_path, ["a.jpg"], mean_colour, 16, "mean", tmp_path / "f.npz"))
