"""Layouts of images and masks as people have them, found without being told."""

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lupi.errors import LupiError
from lupi.loaders.findings import Findings
from lupi.loaders.images.cache import Loaded
from lupi.loaders.images.folder import ImageFolder
from lupi.loaders.images.index import Index, Item
from lupi.loaders.images.masks import pair_masks
from lupi.loaders.images.remarks import region_remarks
from lupi.loaders.images.trees import open_tree, with_outside
from lupi.tasks.images.image_files import load_images
from lupi.tasks.images.image_folder import ImageFolderSettings
from made_images import annotation, save_image, zipped

SIZE = (40, 20)


def save_mask(path: Path, box: tuple[int, int, int, int] | None = (10, 4, 20, 12)) -> None:
    mask = Image.new("L", SIZE)
    if box is not None:
        mask.paste(255, box)
    path.parent.mkdir(parents=True, exist_ok=True)
    mask.save(path)


def read(root: Path, **given: Any) -> tuple[Index, Findings]:
    findings = Findings("skip")
    source = ImageFolder(**given)
    tree = with_outside(open_tree(root), given.values())
    return source.index(tree, findings), findings


def by_name(index: Index) -> dict[str, Item]:
    return {item.name: item for item in index.items}


LAYOUTS = {
    "in a folder": ("images/{c}/{i}.jpg", "masks/{c}/{i}.png"),
    "in a folder of each class": ("{c}/images/{i}.jpg", "{c}/mask/{i}.png"),
    "in a folder without classes": ("{c}/{c}{i}.jpg", "ground_truth/{c}{i}.png"),
    "beside": ("{c}/{c} ({i}).png", "{c}/{c} ({i})_mask.png"),
    "beside, one folder around": ("set/{c}/{i}.jpg", "set/{c}/{i}-mask.jpg"),
    "with another suffix": ("{c}/Imgs/{i}.jpg", "{c}/Imgs/{i}.png"),
    "in parts": ("train/{c}/{i}.jpg", "train_masks/train/{c}/{i}_seg.png"),
}


@pytest.mark.parametrize(("image", "mask"), LAYOUTS.values(), ids=LAYOUTS)
def test_masks_are_found(tmp_path: Path, image: str, mask: str) -> None:
    root = tmp_path / "mine"
    given = {}
    for c in ("cats", "dogs"):
        for i in range(3):
            save_image(root / image.format(c=c, i=i), SIZE)
            save_mask(root / mask.format(c=c, i=i))
    if mask.startswith("train_masks"):
        given["masks"] = "train_masks"
    index, findings = read(root, **given)
    assert index.classes == ["cats", "dogs"]
    assert not findings.bad
    pairs = {item.name: item.masks for item in index.items}
    assert pairs == {
        image.format(c=c, i=i): (mask.format(c=c, i=i),) for c in ("cats", "dogs") for i in range(3)
    }
    assert read(zipped(root, tmp_path / "mine.zip"), **given)[0] == index


def test_several_masks_of_an_image_are_one_region(tmp_path: Path) -> None:
    for c in ("benign", "malignant"):
        for i in range(4):
            save_image(tmp_path / f"in/{c}/{c} ({i}).png", SIZE)
            save_mask(tmp_path / f"in/{c}/{c} ({i})_mask.png")
    save_mask(tmp_path / "in/benign/benign (1)_mask_1.png", (30, 4, 40, 12))
    loaded = load(tmp_path / "in", tmp_path / "cache")
    assert loaded.every.masks is not None
    assert sorted(loaded.every.masks.sum((1, 2)).tolist()) == [40] * 7 + [80]
    assert any("1 with several" in fact.text for fact in loaded.layout)


def test_a_class_may_be_called_like_masks() -> None:
    names = ["masks/a.jpg", "masks/b.jpg", "hats/c.jpg", "hats/d.jpg"]
    assert pair_masks(names).images == names
    assert not pair_masks(names).masks


def test_a_mask_of_another_class_is_not_taken(tmp_path: Path) -> None:
    for c in ("cats", "dogs"):
        save_image(tmp_path / f"images/{c}/{c[0]}.jpg", SIZE)
    save_image(tmp_path / "images/cats/1.jpg", SIZE)
    save_mask(tmp_path / "masks/dogs/1.png")
    save_mask(tmp_path / "masks/cats/c.png")
    index, findings = read(tmp_path)
    assert by_name(index)["images/cats/1.jpg"].masks == ()
    assert [finding.file for finding in findings.bad] == ["masks/dogs/1.png"]


def test_files_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(2):
        for c in ("cats", "dogs"):
            save_image(tmp_path / f"images/{c}/{i}.jpg", SIZE)
            save_mask(tmp_path / f"masks/{c}/{i}.png")
    (tmp_path / "g.csv").write_text("file,who,where\n" + "".join(
        f"{c}/{i}.jpg,p{i},x\n" for i in range(2) for c in ("cats", "dogs")))  # fmt: skip
    monkeypatch.chdir(tmp_path)
    given: dict[str, Any] = {"root": "images", "masks": "masks/", "groups": "g.csv"}
    settings = ImageFolderSettings(**given, group_column="who")
    index = settings.source().index(settings.tree(), Findings("stop"))
    assert by_name(index)["cats/1.jpg"] == Item(
        "cats/1.jpg", "cats", masks=("masks/cats/1.png",), group="p1"
    )
    before = settings.tree().fingerprint
    save_mask(tmp_path / "masks/cats/1.png", (0, 0, 1, 1))
    os.utime(tmp_path / "masks/cats/1.png", (1, 1))
    assert settings.tree().fingerprint != before
    assert any("2 in g.csv, column who" in fact.text for fact in index.layout)
    bad = ImageFolderSettings(**given, group_column="age")
    with pytest.raises(LupiError, match="no column is called `age`"):
        bad.source().index(bad.tree(), Findings("stop"))


def load(root: Path, cache: Path, **changes: Any) -> Loaded:
    small = {"root": root, "image_size": 20, "n_val": 1, "n_test": 1, "cache": cache}
    return load_images(
        ImageFolderSettings(**{**small, "fit": "squash", "on_bad": "skip", **changes})
    )


def test_a_class_without_regions_is_said(tmp_path: Path) -> None:
    for i in range(4):
        save_image(tmp_path / f"in/free/{i}.jpg", SIZE)
        save_image(tmp_path / f"in/crack/{i}.jpg", SIZE)
        save_mask(tmp_path / f"in/masks/crack/{i}.png")
    loaded = load(tmp_path / "in", tmp_path / "cache")
    assert loaded.every.has_region is not None
    assert loaded.every.has_region.sum() == 4
    (remark,) = region_remarks(loaded.every, loaded.classes)
    assert "only images of crack have a region, those of free never" in remark
    for i in range(4):
        save_mask(tmp_path / f"in/masks/free/{i}.png", None)  # black: nothing here
    loaded = load(tmp_path / "in", tmp_path / "cache")
    assert loaded.every.has_region is not None
    assert loaded.every.has_region.all()
    assert loaded.findings.counts() == {"empty region": 4}
    (remark,) = region_remarks(loaded.every, loaded.classes)
    assert remark.endswith("learn from empty masks that nothing is there in free")
    save_mask(tmp_path / "in/masks/free/0.png")
    assert not region_remarks(load(tmp_path / "in", tmp_path / "cache").every, loaded.classes)


def test_boxes_beside_outlines_are_drawn_into_masks(tmp_path: Path) -> None:
    for c in ("cats", "dogs"):
        for i in range(4):
            save_image(tmp_path / f"in/{c}/{i}.jpg", SIZE)
    shapes = [
        '<box xtl="10" ytl="4" xbr="20" ybr="12"/>',
        '<polygon points="10,4;20,4;20,12;10,12"/>',
    ]
    images = "".join(
        f'<image name="{c}/{i}.jpg" width="40" height="20">{shapes[i % 2]}</image>'
        for c in ("cats", "dogs")
        for i in range(4)
    )
    (tmp_path / "in/cvat.xml").write_text(f"<annotations>{images}</annotations>")
    loaded = load(tmp_path / "in", tmp_path / "cache")
    assert loaded.every.masks is not None
    assert set(loaded.every.masks.sum((1, 2)).tolist()) == {5 * 8}


BACK = {
    3: Image.Transpose.ROTATE_180,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}
"""From an image as displayed to the file, by EXIF orientation."""


def turn(path: Path, orientation: int) -> None:
    """Save an image as a camera that is held otherwise does."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.open(path).transpose(BACK[orientation]).save(path, quality=95, exif=exif)


@pytest.mark.parametrize("orientation", [3, 5, 6, 7, 8])
def test_exif_orientation_turns_image_mask_and_boxes(tmp_path: Path, orientation: int) -> None:
    root = tmp_path / "in"
    for c in ("cats", "dogs"):
        for i in range(3):
            save_image(root / f"{c}/{i}.jpg", SIZE, (10, 4, 20, 12))
            save_mask(root / f"masks/{c}/{i}.png")
    turn(root / "cats/0.jpg", orientation)

    def check(loaded: Loaded) -> None:
        assert loaded.findings.counts() == {"image turned upright": 1}
        regions = loaded.every.masks
        for row, x in enumerate(loaded.every.x.astype(int)):
            red = x[0] > x[2] + 60
            if regions is not None:
                inside = regions[row] > 0
            else:
                inside = np.zeros_like(red)
                x0, y0, x1, y1 = loaded.every.boxes[row][0]
                inside[y0:y1, x0:x1] = True
            assert (red == inside).mean() > 0.97

    check(load(root, tmp_path / "cache"))  # of the displayed image
    if orientation > 4:  # of the stored one
        mask = Image.open(root / "masks/cats/0.png")
        stored = mask.transpose(BACK[orientation])
        stored.save(root / "masks/cats/0.png")
        check(load(root, tmp_path / "cache"))
        x0, y0, x1, y1 = stored.getbbox() or (0, 0, 0, 0)
        shutil.rmtree(root / "masks")
        for c in ("cats", "dogs"):
            for i in range(3):
                (root / f"{c}/{i}.xml").write_text(annotation((10, 4, 20, 12), size=SIZE))
        (root / "cats/0.xml").write_text(annotation((x0, y0, x1, y1), size=stored.size))
        check(load(root, tmp_path / "cache"))


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    root = tmp_path / "in"
    for c in ("cats", "dogs"):
        for i in range(3):
            save_image(root / f"{c}/{i}.png", SIZE)
            save_mask(root / f"{c}/{i}_mask.png")
    for last in ("", "_mask"):
        odd = os.fsdecode(b"caf\xe9" + f"{last}.png".encode())
        (root / f"cats/0{last}.png").rename(root / "cats" / odd)
    loaded = load(root, tmp_path / "cache")
    assert len(loaded.every.y) == 6
    assert loaded.every.has_region is not None
    assert loaded.every.has_region.all()


def test_sixteen_bit_images_that_become_black_are_said(tmp_path: Path) -> None:
    root = tmp_path / "in"
    for c in ("cats", "dogs"):
        for i in range(3):
            save_mask(root / f"masks/{c}/{i}.png")
            save_image(root / f"{c}/{i}.png", SIZE)
    dark = np.full(SIZE[::-1], 4095, np.uint16)
    Image.fromarray(dark).save(root / "cats/0.png")
    loaded = load(root, tmp_path / "cache")
    assert loaded.findings.counts() == {
        "16-bit image converted to RGB": 1,
        "16-bit image that becomes nearly black": 1,
    }
    assert "4,095 of 65,535" in " ".join(loaded.findings.lines())


def test_jpeg_masks_are_blurred(tmp_path: Path) -> None:
    root = tmp_path / "in"
    for c in ("cats", "dogs"):
        for i in range(3):
            save_image(root / f"{c}/{i}.png", SIZE)
            mask = Image.new("L", SIZE)
            mask.paste(255, (10, 4, 20, 12))
            mask.save(root / f"{c}/{i}_mask.jpg", quality=60)
    loaded = load(root, tmp_path / "cache")
    assert loaded.every.masks is not None
    assert (abs(loaded.every.masks.sum((1, 2)).astype(int) - 40) <= 8).all()
