"""Tasks over images in files: settings, splits, scores."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from conftest import digits_task
from lupi.core import Batch, Control, Losses, Method, Task
from lupi.errors import LupiError
from lupi.facts import Fact
from lupi.loaders.images.batches import Images
from lupi.loaders.images.index import Item
from lupi.records import Design
from lupi.settings import Settings
from lupi.subsets import Part
from lupi.tasks.images.image import ImageRows
from lupi.tasks.images.image_files import load_images
from lupi.tasks.images.image_folder import ImageFolderSettings
from lupi.tasks.images.network import ImageNetworkSettings
from lupi.tasks.registry import build_task, parse_task
from lupi.train.evaluate import compute_outputs
from lupi.train.run import run
from lupi.train.settings import RunSettings
from made_images import image_folder, imagenet, save_image, tiny_imagenet
from made_runs import run_from, task_from


@pytest.fixture
def mine(tmp_path: Path) -> dict[str, Any]:
    return {
        "name": "image-folder",
        "root": str(image_folder(tmp_path / "mine", n_images=8)),
        "boxes": "boxes.csv",
        "image_size": 16,
        "n_val": 2,
        "n_test": 2,
        "cache": str(tmp_path / "cache"),
    }


def run_settings(task: dict[str, Any], **changes: Any) -> RunSettings:
    raw = {
        "task": task,
        "network": {"width": 2, "n_hidden": 8},
        "train": {"epochs": 2, "batch_size": 4},
        "method": "het-dropout",
        "size": 6,
        "seed": 0,
    }
    return run_from({**raw, **changes})


@pytest.mark.parametrize("name", ["tiny-imagenet", "imagenet", "image-folder"])
def test_every_layout_becomes_a_task(tmp_path: Path, name: str) -> None:
    layouts: dict[str, tuple[Callable[[Path], Path], dict[str, Any]]] = {
        "tiny-imagenet": (tiny_imagenet, {}),
        "imagenet": (imagenet, {"n_test": 1}),
        "image-folder": (image_folder, {"n_test": 1, "boxes": "boxes.csv"}),
    }
    make, own = layouts[name]
    sizes = {"image_size": 24, "stored_size": 32, "n_val": 1, "classes": 2}
    root, cache = str(make(tmp_path / "x")), str(tmp_path / "cache")
    task = {"name": name, "root": root, "cache": cache, **sizes, **own}
    built = task_from(task, {"width": 2}).for_run(4, 0)
    splits = built.splits(4, seed=0)
    batch = next(iter(splits.train.batches(4, torch.Generator().manual_seed(0))))
    assert batch.x.shape == (4, 3, 24, 24)
    assert batch.xstar is not None
    assert batch.xstar.shape == (4, 1, 24, 24)
    assert built.network()(batch.x).shape == (4, 2)
    assert next(iter(splits.val.batches(4))).xstar is None
    assert next(iter(splits.test.batches(4))).xstar is None
    shown = next(iter(built.splits(4, seed=0, reveal=True).test.batches(4)))
    assert shown.has_xstar is not None
    assert shown.has_xstar.any()
    assert built.example().shape == (2, 3, 24, 24)


def test_an_oracle_needs_test_images_with_a_region(tmp_path: Path) -> None:
    root = tiny_imagenet(tmp_path / "x")
    val = root / "val/val_annotations.txt"
    val.write_text(
        "".join("\t".join(line.split("\t")[:2]) + "\n" for line in val.read_text().splitlines())
    )
    task = {"name": "tiny-imagenet", "root": str(root), "cache": str(tmp_path), "n_val": 1}
    built = task_from(task, {"width": 2})
    assert len(built.splits(4, seed=0).test) == 6
    with pytest.raises(LupiError, match="leave the oracle out"):
        built.splits(4, seed=0, reveal=True)


def test_small_training_sets_are_parts_of_large_ones_by_images_per_class(
    mine: dict[str, Any],
) -> None:
    task = task_from(mine, {})
    small, large = task.splits(4, seed=1).train, task.splits(8, seed=1).train
    first, second = (next(iter(split.batches(8))) for split in (small, large))
    assert torch.equal(first.x, second.x[:4])
    assert first.y.bincount().tolist() == [2, 2]


def test_a_fraction_of_rows_with_xstar_is_one_of_those_that_have_any(mine: dict[str, Any]) -> None:
    table = Path(mine["root"], "boxes.csv")
    lines = table.read_text().splitlines()
    table.write_text("\n".join(line for line in lines if not line.startswith("cats")))
    task = task_from(mine, {})
    for frac, n in ((1.0, 4), (0.5, 2), (0.0, 0)):
        batch = next(iter(task.splits(8, 0, "shuffled", frac).train.batches(8)))
        assert batch.has_xstar is not None
        assert batch.has_xstar.sum() == n
        assert (batch.y[batch.has_xstar] == 1).all()


@pytest.mark.parametrize("control", ["real", "shuffled", "constant", "random"])
def test_without_any_x_star_training_goes_on(
    mine: dict[str, Any], tmp_path: Path, control: Control
) -> None:
    Path(mine["root"], "boxes.csv").write_text("file,x0,y0,x1,y1\n")
    result = run(run_settings(mine, control=control), tmp_path / "run")
    assert result["status"] == "finished"
    assert result["data"] == {"training image without x*": 8}


def test_a_run_records_what_was_found(mine: dict[str, Any], tmp_path: Path) -> None:
    Path(mine["root"], "cats/bad.png").write_bytes(b"")
    settings = run_settings({**mine, "on_bad": "skip"})
    result = run(settings, tmp_path / "run")
    assert result["data"] == {"training image without x*": 0, "unreadable image": 1}
    assert "top5" not in result["metrics"]["test"]  # there are two classes
    found = [fact.text for fact in build_task(settings.task, settings.network).facts]
    assert any(text.startswith("unreadable image: 1, the first in cats/bad.png") for text in found)
    assert "about.json" in found[-1]


def test_where_the_cache_lies_is_not_part_of_a_runs_identity(mine: dict[str, Any]) -> None:
    first = run_settings(mine).run_id
    assert run_settings({**mine, "cache": "elsewhere"}).run_id == first
    assert run_settings({**mine, "n_val": 1}).run_id != first


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stored_size": 8}, r"task.stored_size: got 8; .*image_size \(16\) or more"),
        ({"test_crops": "ten"}, "task.test_crops: .*need a stored_size above image_size"),
        ({"classes": 1}, "task.classes"),
        ({"augment": {"flop": True}}, "task.augment.flop: no such key; did you mean `flip`"),
        ({"on_bad": "ignore"}, "task.on_bad: got 'ignore'"),
        ({"masks": "masks"}, "give either boxes or masks"),
        ({"mask_values": [1]}, "mask_values are for masks, and boxes are given"),
    ],
)
def test_wrong_settings(mine: dict[str, Any], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(LupiError, match=message):
        parse_task({**mine, **changes})


def test_top_five_counts_the_five_largest() -> None:
    task = digits_task()
    output = torch.arange(10.0).repeat(4, 1)  # classes 9, 8, 7, 6 and 5 come first
    scores = task.outcome.metrics(output, torch.tensor([9, 5, 4, 0]))
    assert scores["accuracy"] == 0.25
    assert scores["top5"] == 0.5


class Fixed(Method):
    """A network that tells by the first pixel: bright is class 1, more or less surely."""

    name, summary, uses_xstar, Settings = "fixed", "", False, Settings

    def loss(self, batch: Batch) -> Losses:
        raise NotImplementedError

    def predict(self, x: Tensor) -> Tensor:
        assert x.dim() == 4
        pixel = x[:, 0, 0, 0]
        return torch.stack([torch.zeros_like(pixel), 4 * pixel - 1], 1)


def test_ten_crops_sum_the_probabilities(mine: dict[str, Any]) -> None:
    ten = {**mine, "stored_size": 24, "test_crops": "ten"}
    task = task_from(ten, {})
    method = Fixed(nn.Linear(1, 1), task, None)
    splits = task.splits(4, seed=0)
    views = splits.also["test_ten_crops"]
    summed, y, _ = compute_outputs(method, views, batch_size=3)
    assert summed.shape == (4, 2)
    crops = torch.cat([batch.x for batch in views.batches(3)])  # (4, 10, C, H, W)
    by_hand = sum(method.predict(crops[:, v]).softmax(1) for v in range(10))
    assert isinstance(by_hand, Tensor)
    assert torch.allclose(summed.exp(), by_hand / 10, atol=1e-6)
    assert next(iter(splits.test.batches(3))).x.dim() == 4  # the middle is scored as well
    assert task.outcome.metrics(summed, y)["loss"] > 0


def test_a_run_scores_middle_and_ten_crops(mine: dict[str, Any], tmp_path: Path) -> None:
    ten = run_settings({**mine, "stored_size": 24, "test_crops": "ten"})
    metrics = run(ten, tmp_path / "run")["metrics"]
    assert set(metrics) == {"val", "test", "test_ten_crops"}
    assert metrics["test"]["loss"] != metrics["test_ten_crops"]["loss"]


def classes_of(task: Task, rows: NDArray[np.int64]) -> list[int]:
    return [int(n) for n in np.bincount(task.division.classes_of(rows, 0))]


def images_of(task: Task, part: Part, seed: int) -> set[bytes]:
    assert isinstance(task.rows, ImageRows)
    images = task.rows.stores(seed)[part]
    assert isinstance(images, Images)
    return {image.tobytes() for image in images.x[task.division.draw(seed)[part]]}


def folder_task(settings: dict[str, Any]) -> Task:
    task = task_from(settings, {})
    assert isinstance(task, Task)
    return task


def test_each_seed_draws_its_own_test_images(mine: dict[str, Any]) -> None:
    task = folder_task(mine)
    assert task.design == Design(n_pool=16, test="per-seed", n_test=4)
    draws = [task.division.draw(seed) for seed in (0, 0, 1)]
    for parts in draws:
        rows = [set(part.tolist()) for part in parts.values()]
        assert [len(some) for some in rows] == [8, 4, 4]
        assert len(set.union(*rows)) == 16
        assert all(classes_of(task, part) == [len(part) // 2] * 2 for part in parts.values())
    first, again, other = (set(parts["test"].tolist()) for parts in draws)
    assert first == again != other


def test_images_added_later_take_the_place_of_at_most_one(mine: dict[str, Any]) -> None:
    task = folder_task(mine)
    before = images_of(task, "test", 3)
    save_image(Path(mine["root"]) / "cats/added.png", seed=99)
    after = images_of(folder_task({**mine, "on_bad": "skip"}), "test", 3)
    assert len(after) == len(before)
    assert len(before - after) <= 1


def test_a_folder_with_a_test_part_has_the_same_for_every_seed(
    tmp_path: Path, mine: dict[str, Any]
) -> None:
    root = Path(mine["root"])
    names = [p.relative_to(root).as_posix() for p in sorted(root.rglob("*.png"))]
    lines = [
        f"{name},{name.split('/')[0]},{'test' if i % 4 == 0 else 'train'}"
        for i, name in enumerate(names)
    ]
    (root / "labels.csv").write_text("file,label,part\n" + "\n".join(lines) + "\n")
    task = folder_task({**mine, "labels": "labels.csv"})
    assert task.design == Design(n_pool=12, test="fixed", n_test=4)
    first, other = task.division.draw(0), task.division.draw(1)
    assert np.array_equal(first["test"], other["test"])
    assert not np.array_equal(first["val"], other["val"])


def test_changed_images_are_another_run(mine: dict[str, Any]) -> None:
    before = run_settings(mine)
    assert run_settings(mine).run_id == before.run_id
    path = next(Path(mine["root"]).rglob("*.png"))
    save_image(path, seed=99)
    assert run_settings(mine).run_id != before.run_id
    with pytest.raises(LupiError, match="have changed since this run was planned; plan it again"):
        build_task(before.task, before.network)


def grouped_folder(root: Path, n_images: int = 12) -> Path:
    """Write images in groups of three, listed with two kinds of groups."""
    image_folder(root, n_images=n_images)
    names = [f"{label}/{i}.png" for label in ("cats", "dogs") for i in range(n_images)]
    lines = [f"{name},board{i // 3},layout{i // 6}" for i, name in enumerate(names)]
    (root / "groups.csv").write_text("\n".join(["file,board,layout", *lines]) + "\n")
    return root


def test_groups_of_images_are_in_one_part_only(tmp_path: Path) -> None:
    settings = {
        "name": "image-folder",
        "root": str(grouped_folder(tmp_path / "x")),
        "boxes": "boxes.csv",
        "image_size": 16,
        "n_val": 3,
        "n_test": 4,
        "groups": "groups.csv",
        "group_column": "board",
        "cache": str(tmp_path / "cache"),
    }
    task = folder_task(settings)
    parsed = parse_task(settings)
    assert isinstance(parsed, ImageFolderSettings)
    loaded = load_images(parsed)
    assert loaded.groups is not None
    drawn = set()
    for seed in range(6):
        parts = task.division.draw(seed)
        groups = [set(loaded.groups[rows]) for rows in parts.values()]
        assert sum(map(len, groups)) == len(set.union(*groups)) == 8
        assert [classes_of(task, parts[part]) for part in ("val", "test")] == [[3, 3], [3, 3]]
        drawn.add(tuple(parts["test"]))
    assert len(drawn) > 1
    assert task.design.groups == "board"
    assert len(task.splits(8, 0).train) == 8
    with pytest.raises(
        LupiError, match=r"group_column: groups\.csv needs one column beside the files"
    ):
        task_from({**settings, "group_column": None}, {})
    with pytest.raises(LupiError, match="no column is called `bord`; did you mean `board`"):
        task_from({**settings, "group_column": "bord"}, {})
    with pytest.raises(LupiError, match="group_column has no effect without groups"):
        task_from({**settings, "groups": None}, {})


def test_subgroups_of_images_are_a_column_of_the_csv(tmp_path: Path) -> None:
    root = grouped_folder(tmp_path / "x")
    table = (root / "groups.csv").read_text().splitlines()
    lines = [f"{line},{i % 2 or ''},{i}" for i, line in enumerate(table[1:])]
    head = table[0].replace("file", "filename") + ",age,number"
    (root / "groups.csv").write_text("\n".join([head, *lines]) + "\n")
    settings = {
        "name": "image-folder",
        "root": str(root),
        "boxes": "boxes.csv",
        "image_size": 16,
        "n_val": 3,
        "n_test": 4,
        "groups": "groups.csv",
        "group_column": "board",
        "by": "age",
        "cache": str(tmp_path / "cache"),
    }
    by = folder_task(settings).division.by
    assert by is not None
    assert by.fact().text == f"age: 1 {len(lines) // 2}, missing {-(-len(lines) // 2)}"
    names = {Item(line.split(",")[0], "").key: line.split(",")[3] for line in lines}
    parsed = parse_task(settings)
    assert isinstance(parsed, ImageFolderSettings)
    for key, place in zip(load_images(parsed).keys, by.codes, strict=True):
        assert by.names[place] == (names[int(key)] or "missing")
    quarters = folder_task({**settings, "by": "number"}).division.by
    assert quarters is not None
    assert len(quarters.names) == 4
    with pytest.raises(LupiError, match=r"task.by: no column is called `ages`; did you mean `age`"):
        task_from({**settings, "by": "ages"}, {})
    (root / "groups.csv").unlink()
    with pytest.raises(LupiError, match=r"task.by: images have columns in a CSV"):
        task_from({**settings, "groups": None, "group_column": None}, {})


def test_images_without_a_group(tmp_path: Path) -> None:
    root = grouped_folder(tmp_path / "x")
    lines = (root / "groups.csv").read_text().splitlines()
    (root / "groups.csv").write_text("\n".join(lines[:-1]) + "\n")
    settings = {"name": "image-folder", "root": str(root), "boxes": "boxes.csv", "n_val": 3}
    settings |= {"groups": "groups.csv", "group_column": "layout", "cache": str(tmp_path / "c")}
    settings |= {"n_test": 6, "image_size": 16, "n_val": 2}
    with pytest.raises(LupiError, match="image without a group"):
        task_from(settings, {})


@pytest.mark.parametrize("seed", [0, 20])
def test_facts_of_a_run_count_its_own_training_rows(seed: int) -> None:
    task = build_task(parse_task({"name": "digits"}), ImageNetworkSettings())
    assert isinstance(task, Task)
    (fact,) = task.run_facts(37, seed)
    y = torch.cat([batch.y for batch in task.for_run(37, seed).splits(37, seed).train.batches(64)])
    counts = ", ".join(f"{name} {n}" for name, n in enumerate(y.bincount().tolist()))
    assert fact == Fact("rows", f"37 to train on, drawn by seed {seed}: {counts}")
