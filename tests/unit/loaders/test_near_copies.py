"""Near-copies of images: found, named, and only where training and test may share them."""

import io
import shutil
import zlib
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from lupi.loaders.images.near_copies import near_copies, thumbnails
from lupi.tasks.images.image_files import load_images
from lupi.tasks.images.image_folder import ImageFolderSettings

N = 60


def scene(seed: int, side: int = 64) -> Image.Image:
    pixels = np.random.default_rng(seed).integers(0, 256, (6, 6, 3), dtype=np.uint8)
    return Image.fromarray(pixels).resize((side, side), Image.Resampling.BICUBIC)


def stored(image: Image.Image) -> NDArray[np.uint8]:
    return np.asarray(image.convert("RGB").resize((64, 64))).transpose(2, 0, 1)


def recompressed(image: Image.Image) -> Image.Image:
    file = io.BytesIO()
    image.save(file, "JPEG", quality=30)
    return Image.open(file)


def stripes(offset: int) -> Image.Image:
    """Rows of light and dark: brightness never changes to the right."""
    rows = 128 + 100 * np.sin((np.arange(64) + offset) / 5)
    return Image.fromarray(np.repeat(rows[:, None], 64, 1).astype(np.uint8))


def test_copies_are_found_and_others_are_not() -> None:
    scenes = [scene(seed) for seed in range(N)]
    copies = [
        recompressed(scenes[0]),
        scenes[1].resize((90, 90)),
        scenes[2].point(lambda v: v // 2),
    ]
    blank = [Image.new("RGB", (64, 64), grey) for grey in ("black", "black", "white", "white")]
    striped = [stripes(0), stripes(5), stripes(10)]
    x = np.stack([stored(image) for image in (*scenes, *copies, *blank, *striped)])
    assert near_copies(thumbnails(x)).tolist() == [[0, N], [1, N + 1], [2, N + 2]]
    assert len(near_copies(thumbnails(x[:0]))) == 0


def test_small_images() -> None:
    x = np.stack([stored(scene(i))[:, ::8, ::8] for i in (0, 1, 0)])
    assert near_copies(thumbnails(x)).tolist() == [[0, 2]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for label, first in (("cats", 0), ("dogs", 20)):
        (tmp_path / "pets" / label).mkdir(parents=True)
        for i in range(8):
            scene(first + i).save(tmp_path / f"pets/{label}/{i}.png")
    (tmp_path / "pets/boxes.csv").write_text("file,x0,y0,x1,y1\ncats/0.png,0,0,9,9\n")
    return tmp_path / "pets"


def remarks(root: Path, **settings: str) -> list[str]:
    given = {"root": str(root), "n_val": 1, "n_test": 2, "cache": root.parent / "cache"}
    return load_images(ImageFolderSettings(**{**given, **settings})).findings.remarks


def test_a_remark_names_copies_and_what_to_do(root: Path) -> None:
    assert remarks(root) == []
    shutil.copy(root / "cats/0.png", root / "cats/9.png")
    shutil.copy(root / "cats/1.png", root / "dogs/9.png")
    (remark,) = remarks(root)
    assert remark.startswith("4 of 18 images are near-copies of others, such as ")
    assert "1 pair has different classes" in remark
    assert "--groups" in remark


def test_images_of_one_group_may_be_alike(root: Path) -> None:
    shutil.copy(root / "cats/0.png", root / "cats/9.png")
    files = [f"{label}/{i}.png" for label in ("cats", "dogs") for i in range(8)]
    lines = [f"{file},{i}" for i, file in enumerate([*files])]
    (root / "groups.csv").write_text("\n".join(["file,group", *lines, "cats/9.png,0"]))
    assert remarks(root) == []


def test_copies_within_a_part_are_harmless(root: Path) -> None:
    for label in ("cats", "dogs"):
        for part in ("train", "val", "test"):
            shutil.copytree(root / label, root / part / label)
            for path in (root / part / label).iterdir():
                scene(zlib.crc32(str(path.relative_to(root)).encode())).save(path)
        shutil.rmtree(root / label)
    (root / "boxes.csv").write_text("file,x0,y0,x1,y1\ntrain/cats/0.png,0,0,9,9\n")
    shutil.copy(root / "train/cats/0.png", root / "train/cats/9.png")
    assert remarks(root) == []
    shutil.copy(root / "train/cats/1.png", root / "test/cats/9.png")
    (remark,) = remarks(root)
    assert "train/cats/1.png" in remark
    assert "remove them from one of the parts" in remark
