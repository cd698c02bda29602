from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from lupi.errors import LupiError
from lupi.loaders.xstar import image_vectors as image_vectors
from lupi.loaders.xstar.image_vectors import list_images, write_vectors
from made_images import save_image


def mean_colour(images: Tensor) -> Tensor:
    assert images.dtype == torch.uint8
    return images.float().mean((2, 3))


def make_folder(folder: Path, n: int = 20) -> Path:
    for i in range(n):
        save_image(folder / f"{i % 2}/{i:02}.jpg", size=(40, 30), box=(0, 0, 2 * i, 30), seed=i)
    return folder


def test_each_image_has_its_vector(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "images")
    (folder / "notes.txt").write_text("no image")
    names = list_images(folder)
    assert len(names) == 20
    (folder / "0/broken.png").write_bytes(b"nothing")
    out = tmp_path / "f.npz"
    work = write_vectors(folder, list_images(folder), mean_colour, 16, "mean", out)
    problems = [problem for problem in work if problem]
    assert problems[0].startswith("0/broken.png: unreadable image")
    with np.load(out) as arrays:
        assert arrays["files"].tolist() == names
        red = dict(zip(names, arrays["features"][:, 0], strict=True))
    assert red["1/19.jpg"] > red["0/10.jpg"] > red["0/00.jpg"]


def test_stopped_work_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_vectors, "SAVED_EVERY", 8)
    monkeypatch.setattr(image_vectors, "AT_ONCE", 4)
    folder, out = make_folder(tmp_path / "images"), tmp_path / "f.npz"
    names = list_images(folder)
    seen: list[int] = []

    def counting(images: Tensor) -> Tensor:
        seen.append(len(images))
        return mean_colour(images)

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


def test_folders_without_images(tmp_path: Path) -> None:
    with pytest.raises(LupiError, match="has no images in it"):
        list_images(tmp_path)
    with pytest.raises(LupiError, match="is not a folder"):
        list_images(tmp_path / "none")
    (tmp_path / "a.jpg").write_bytes(b"")
    with pytest.raises(LupiError, match="none of the images"):
        list(write_vectors(tmp_path, ["a.jpg"], mean_colour, 16, "mean", tmp_path / "f.npz"))
