"""The real Tiny ImageNet, straight from its zip."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from lupi.tasks.registry import parse_task, shard_task
from made_runs import task_from

NAME = "tiny-imagenet-100.zip"


def find_zip() -> Path | None:
    """LUPI_TINY_IMAGENET, or shared/data in a folder above the project."""
    if given := os.environ.get("LUPI_TINY_IMAGENET"):
        return Path(given)
    above = (folder / "shared/data" / NAME for folder in Path(__file__).parents)
    return next((path for path in above if path.exists()), None)


@pytest.mark.slow
@pytest.mark.skipif(
    find_zip() is None,
    reason=f"no shared/data/{NAME} above the project, and LUPI_TINY_IMAGENET is not set",
)
def test_the_real_zip(tmp_path: Path) -> None:
    settings = {"name": "tiny-imagenet", "root": str(find_zip()), "image_size": 32, "classes": 10}
    task = task_from({**settings, "cache": str(tmp_path)}, {"width": 4})
    assert task.finding_counts["training image without x*"] == 0
    assert all("converted" in kind for kind in list(task.finding_counts)[1:])  # nothing is bad
    splits = task.splits(4500, seed=0)
    assert (len(splits.train), len(splits.val), len(splits.test)) == (4500, 500, 500)
    batches = list(splits.train.batches(500))
    assert torch.cat([batch.y for batch in batches]).bincount().tolist() == [450] * 10
    assert all(batch.has_xstar is not None and batch.has_xstar.all() for batch in batches)
    area = np.mean([batch.xstar.mean() for batch in batches if batch.xstar is not None])
    assert 0.3 < area < 0.8
    x = batches[0].x
    assert 0.3 < x.mean() < 0.6
    assert x.std() > 0.15
    test = torch.cat([batch.y for batch in splits.test.batches(500)])
    assert test.bincount().tolist() == [50] * 10


@pytest.mark.slow
@pytest.mark.skipif(
    find_zip() is None,
    reason=f"no shared/data/{NAME} above the project, and LUPI_TINY_IMAGENET is not set",
)
def test_shards_of_the_real_zip_hold_the_rows_of_the_cache(tmp_path: Path) -> None:
    """Of classes with greyscale images among them."""
    settings = {"name": "tiny-imagenet", "root": str(find_zip()), "classes": 8, "n_train": 100}
    shard_task(parse_task(settings), tmp_path / "shards", 150, lambda done, total: None)
    roots = (settings["root"], str(tmp_path / "shards"))
    cached, streamed = (
        task_from({**settings, "root": root, "cache": str(tmp_path / "cache")}, {"width": 4})
        for root in roots
    )
    assert streamed.finding_counts == cached.finding_counts
    assert any("converted" in kind for kind in streamed.finding_counts)
    for part in ("train", "val"):
        whole = []
        for task in (cached, streamed):
            batches = list(getattr(task.splits(600, 0, "shuffled"), part).batches(100))
            x = torch.cat([batch.x for batch in batches])
            if part == "train":
                masks = [batch.xstar for batch in batches if batch.xstar is not None]
                x = torch.cat([x, torch.cat(masks)], dim=1)
            whole.append(sorted(row.numpy().tobytes() for row in x))
        assert whole[0] == whole[1]
