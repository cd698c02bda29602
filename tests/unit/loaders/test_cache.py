"""From files to memory-mapped images: once, whole or not at all, nothing lost in silence."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lupi.errors import LupiError
from lupi.loaders.images.cache import Loaded
from lupi.tasks.images.image_files import load_images
from lupi.tasks.images.image_folder import ImageFolderSettings
from lupi_paper.images.imagenet import ImagenetSettings
from made_images import annotation, image_folder, imagenet


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return image_folder(tmp_path / "mine")


def settings_of(root: Path, **changes: Any) -> ImageFolderSettings:
    small = {"root": root, "boxes": "boxes.csv", "image_size": 32, "n_val": 1, "n_test": 1}
    return ImageFolderSettings(**{**small, "cache": root.parent / "cache", **changes})


def load(root: Path, **changes: Any) -> Loaded:
    return load_images(settings_of(root, **changes))


def n_decoded(root: Path, **changes: Any) -> int:
    """Count the images that had to be decoded."""
    seen = [0]
    load_images(settings_of(root, **changes), lambda done, total: seen.append(done))
    return max(seen)


def test_images_labels_and_boxes_come_out_together(root: Path) -> None:
    loaded = load(root)
    assert [len(part.y) for part in loaded.parts.values()] == [8, 2, 2]
    assert loaded.classes == ["cats", "dogs"]
    for part in loaded.parts.values():
        assert isinstance(part.x, np.memmap)
        for x, y, box in zip(part.x, part.y, part.boxes, strict=True):
            assert box.tolist() == [[5 + 10 * y, 10, 13 + 10 * y, 26]]
            red = x[0].astype(int) > x[2]
            x0, y0, x1, y1 = box[0]
            assert red[y0:y1, x0:x1].all()
            assert red.sum() == 8 * 16


def test_decoded_once(root: Path) -> None:
    assert n_decoded(root) == 12
    assert n_decoded(root) == 0
    assert (
        n_decoded(root, augment={"flip": False}, on_bad="skip", image_size=16, stored_size=32) == 0
    )
    assert n_decoded(root, image_size=16) == 12
    assert n_decoded(root, fit="squash") == 12


@pytest.mark.parametrize(
    "change",
    [
        lambda root: shutil.copy(root / "cats/0.png", root / "cats/new.png"),
        lambda root: (root / "cats/0.png").rename(root / "cats/new.png"),
        lambda root: os.utime(root / "cats/0.png", (1, 1)),
        lambda root: (root / "boxes.csv").write_text("file,x0,y0,x1,y1\n"),
    ],
    ids=["added", "renamed", "written", "annotations"],
)
def test_rebuilt_when_the_source_changed(root: Path, change: Callable[[Path], Any]) -> None:
    n_decoded(root)
    change(root)
    assert n_decoded(root, on_bad="skip") >= 12


def test_an_interrupted_cache_is_not_used(root: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load_images(settings_of(root), interrupt)
    cache = root.parent / "cache"
    assert not [path for path in cache.iterdir() if path.is_dir()]
    expected = load(root)
    expected.folder.rename(expected.folder.with_name(f"{expected.folder.name}.unfinished"))
    assert n_decoded(root) == 12  # as after a kill, which leaves the unfinished folder
    assert [path.name for path in cache.iterdir() if path.is_dir()] == [expected.folder.name]


def check(root: Path, kind: str, file: str, **changes: Any) -> Loaded:
    """One bad thing: counted with its file under skip, raised under stop, cached or not."""
    with pytest.raises(LupiError) as fresh:
        load(root, **changes)
    loaded = load(root, on_bad="skip", **changes)
    assert [(f.kind, f.file) for f in loaded.findings.bad] == [(kind, file)]
    assert loaded.finding_counts()[kind] == 1
    assert any(kind in line and file in line for line in loaded.findings.lines())
    assert file in (loaded.folder / "about.json").read_text()
    with pytest.raises(LupiError) as cached:
        load(root, **changes)
    assert str(cached.value) == str(fresh.value)
    assert kind in str(cached.value)
    assert file in str(cached.value)
    return loaded


def n_images(loaded: Loaded) -> int:
    return sum(len(part.y) for part in loaded.parts.values())


def test_truncated_image(root: Path) -> None:
    path = root / "cats/0.png"
    path.write_bytes(path.read_bytes()[:2000])
    loaded = check(root, "unreadable image", "cats/0.png")
    assert n_images(loaded) == 11


@pytest.mark.parametrize(
    ("mode", "name"), [("L", "greyscale"), ("CMYK", "CMYK"), ("I;16", "16-bit")]
)
def test_other_modes_are_converted_and_counted(root: Path, mode: str, name: str) -> None:
    (root / "cats/0.png").unlink()
    file = "cats/0.jpg" if mode == "CMYK" else "cats/0.png"
    Image.new(mode, (64, 64)).save(root / file)
    (root / "boxes.csv").write_text((root / "boxes.csv").read_text().replace("cats/0.png", file))
    loaded = load(root)
    assert loaded.findings.counts() == {f"{name} image converted to RGB": 1}
    assert n_images(loaded) == 12


def with_box(root: Path, box: str) -> str:
    """Give one training image this box; return the image's name."""
    lines = (root / "boxes.csv").read_text().splitlines()
    name = _training_image(root)
    lines = [line for line in lines if not line.startswith(f"{name},")] + [f"{name},{box}"]
    (root / "boxes.csv").write_text("\n".join(lines) + "\n")
    return name


def _training_image(root: Path) -> str:
    from lupi.loaders.findings import Findings
    from lupi.loaders.images.folder import ImageFolder
    from lupi.loaders.images.index import hold_out
    from lupi.loaders.images.trees import open_tree

    index = ImageFolder(boxes="boxes.csv").index(open_tree(root), Findings("stop"))
    return hold_out(index.items, 1, 1)["train"][0].name


@pytest.mark.parametrize("box", ["10,10,10,40", "30,10,20,40"])
def test_zero_area_box(root: Path, box: str) -> None:
    loaded = check(root, "zero-area box", with_box(root, box))
    assert loaded.parts["train"].has_region is not None
    assert loaded.parts["train"].has_region.tolist() == [False] + [True] * 7  # kept, without x*
    assert loaded.finding_counts()["training image without x*"] == 1


def test_box_outside_the_image(root: Path) -> None:
    loaded = check(root, "box outside the image", with_box(root, "64,0,80,10"))
    assert loaded.parts["train"].has_region is not None
    assert not loaded.parts["train"].has_region[0]


def test_box_that_sticks_out_is_cut_off(root: Path) -> None:
    loaded = check(root, "box outside the image", with_box(root, "-10,32,20,90"))
    assert loaded.parts["train"].boxes[0].tolist() == [[0, 16, 10, 32]]


def test_a_box_that_fills_the_image_is_not_outside_because_of_rounding(tmp_path: Path) -> None:
    root = imagenet(tmp_path / "imagenet")  # images of 80 x 60; 147 * (80 / 147) is more than 80
    for path in root.rglob("*.xml"):
        path.write_text(annotation((0, 0, 147, 147), size=(147, 147)))
    settings = ImagenetSettings(
        root=root, image_size=60, stored_size=60, n_val=1, n_test=1, cache=tmp_path / "cache"
    )
    assert not load_images(settings).findings.counts()


def test_a_image_that_is_a_link_to_nowhere(root: Path) -> None:
    (root / "cats/link.png").symlink_to(root / "gone.png")
    assert n_images(check(root, "unreadable image", "cats/link.png")) == 12


def test_masks_that_cannot_be_used(root: Path) -> None:
    name = _training_image(root)
    for path in [path for kind in ("cats", "dogs") for path in (root / kind).iterdir()]:
        mask = root / "masks" / path.relative_to(root)
        mask.parent.mkdir(parents=True, exist_ok=True)
        image = Image.new("L", (64, 64))
        image.paste(255, (0, 0, 32, 16))
        image.save(mask)
    masks = {"boxes": None, "masks": "masks"}
    loaded = load(root, **masks)
    assert loaded.parts["train"].masks is not None
    assert loaded.parts["train"].masks[0, :8, :16].all()
    assert loaded.parts["train"].masks[0].sum() == 8 * 16
    Image.new("L", (64, 64)).save(root / "masks" / name)
    loaded = load(root, **masks)  # black: annotators found nothing
    assert loaded.findings.counts() == {"empty region": 1}
    assert loaded.parts["train"].has_region is not None
    assert loaded.parts["train"].has_region.all()
    assert (
        not loaded.parts["train"].masks[0].any()
        if loaded.parts["train"].masks is not None
        else False
    )
    Image.new("L", (32, 32), 255).save(root / "masks" / name)
    loaded = check(root, "unreadable mask", f"masks/{name}", **masks)
    assert loaded.parts["train"].has_region is not None
    assert loaded.parts["train"].has_region.tolist() == [False] + [True] * 7
    assert n_images(loaded) == 12


def test_a_class_of_which_nothing_is_left(root: Path) -> None:
    for path in (root / "cats").iterdir():
        path.write_bytes(b"")
    with pytest.raises(LupiError, match="class cats has no usable training image"):
        load(root, on_bad="skip")
    assert not [path for path in (root.parent / "cache").iterdir() if path.is_dir()]


def test_not_enough_room(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(root)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(LupiError, match=r"task.cache: .* needs 0.0 GiB, .* fewer images"):
        load(root)
    assert not [path for path in (root.parent / "cache").iterdir() if path.is_dir()]


def test_a_cache_that_is_a_file(root: Path) -> None:
    (root.parent / "file").write_text("")
    with pytest.raises(LupiError, match=r"task.cache: .* can't be used"):
        load(root, cache=root.parent / "file")


def test_imagenet_several_boxes_none_and_boxes_of_another_size(tmp_path: Path) -> None:
    root = imagenet(tmp_path / "imagenet")
    for wnid in ("n00000000", "n00000001"):  # drawn on an image of twice the size
        path = root / f"Annotation/{wnid}/{wnid}_1.xml"
        path.write_text(annotation((40, 20, 100, 80), size=(160, 120)))
    settings = ImagenetSettings(
        root=root, image_size=30, stored_size=60, n_val=1, n_test=1, cache=tmp_path / "cache"
    )
    loaded = load_images(settings)
    assert loaded.parts["train"].x.shape == (8, 3, 60, 60)
    assert loaded.parts["train"].boxes.shape == (8, 2, 4)
    one = [10, 10, 40, 40]  # the middle of 80 x 60 starts at column 10
    found = {json.dumps(boxes.tolist()) for boxes in loaded.parts["train"].boxes}
    empty = [0, 0, 0, 0]
    possible = {json.dumps(b) for b in ([one, empty], [one, [50, 40, 60, 60]], [empty, empty])}
    assert json.dumps([one, empty]) in found
    assert found <= possible
    assert loaded.parts["train"].has_region is not None
    with_boxes = (loaded.parts["train"].boxes[:, 0, 2] > 0).tolist()
    assert loaded.parts["train"].has_region.tolist() == with_boxes
    only = load_images(settings.model_copy(update={"annotated_only": True}))
    assert only.parts["train"].has_region is not None
    assert only.parts["train"].has_region.all()
    assert len(only.parts["train"].y) == sum(with_boxes)


def test_a_box_that_the_middle_does_not_show_is_noted(tmp_path: Path) -> None:
    root = imagenet(tmp_path / "imagenet")
    for path in root.rglob("*_2.xml"):
        path.write_text(annotation((0, 0, 8, 60)))
    settings = ImagenetSettings(
        root=root, image_size=60, stored_size=60, n_val=1, n_test=1, cache=tmp_path / "cache"
    )
    loaded = load_images(settings)  # nothing is bad
    assert loaded.findings.counts() == {"box outside the central square": 2}


@pytest.mark.parametrize("name", ["about.json", "x.npy", "boxes.npy", "y.npy"])
def test_a_damaged_cache_is_named(root: Path, name: str) -> None:
    path = load(root).folder / name
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(LupiError, match=r"is damaged .*; delete it to rebuild it"):
        load(root)
