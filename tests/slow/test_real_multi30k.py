"""The real Multi30K: its texts, captions and CNN features."""

import os
from pathlib import Path

import pytest

from lupi.configs import find_settings
from lupi.settings import read_yaml
from made_runs import task_from


def find_multi30k() -> Path | None:
    """LUPI_MULTI30K, or shared/data/multi30k in a folder above the project."""
    if given := os.environ.get("LUPI_MULTI30K"):
        return Path(given)
    above = (folder / "shared/data/multi30k" for folder in Path(__file__).parents)
    return next((path for path in above if path.exists()), None)


@pytest.mark.slow
@pytest.mark.skipif(
    find_multi30k() is None,
    reason="no shared/data/multi30k above the project, and LUPI_MULTI30K is not set",
)
def test_texts_captions_and_partial_features() -> None:
    root = find_multi30k()
    assert root is not None
    raw = read_yaml(find_settings(Path("multi30k/en-de")))
    task = task_from(
        {
            **raw["task"],
            "root": str(root / "task1/tok"),
            "xstar": str(root / "xstar/{split}.llava_caption.en"),
        },
        raw["network"],
    )
    assert not task.finding_counts
    task = task.for_run(29_000, 0)  # captions become vectors by what the training lines say
    assert task.xstar_dim == 128
    splits = task.splits(29_000, seed=0, reveal=True)
    assert (len(splits.train), len(splits.val), len(splits.test)) == (29_000, 1014, 1000)
    batch = next(iter(splits.test.batches(2000)))
    assert batch.has_xstar is not None
    assert batch.has_xstar.all()
    features = task_from(
        {
            **raw["task"],
            "root": str(root / "task1/tok"),
            "xstar": str(root / "xstar/efficientnet_lite0.npz"),
        },
        raw["network"],
    )
    assert features.finding_counts == {"training line without x*": 29_000 - 6993}
    assert features.for_run(29_000, 0).xstar_dim == 1280
