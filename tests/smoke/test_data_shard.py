"""`lupi data shard`, and training from what it wrote."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from conftest import Here
from lupi.train.run import run
from made_images import image_folder
from made_runs import run_from

SETTINGS = """\
name: mine
task: {name: image-folder, root: pets, boxes: boxes.csv, image_size: 16, n_val: 2, n_test: 2}
network: {width: 2, n_hidden: 8}
train: {epochs: 2, batch_size: 4}
arms:
  no-xstar: {method: no-xstar}
  het-dropout: {method: het-dropout, controls: [shuffled]}
sizes: [6]
seeds: 2
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    image_folder(tmp_path / "pets", n_images=8)
    (tmp_path / "mine.yaml").write_text(SETTINGS)
    return tmp_path


def test_a_comparison_from_shards(folder: Path, here: Here) -> None:
    code, out, err = here("data", "shard", "mine.yaml", "--out", "shards", "--shard-size", "3")
    assert code == 0, err
    assert "train  8 images in 3 shards" in out
    code, out, _ = here(
        "data", "shard", "mine.yaml", "--out", "shards", "--shard-size", "3", "--json"
    )
    assert json.loads(out)["n_images"] == {"train": 8, "val": 4, "test": 4}
    code, out, err = here("compare", "mine.yaml", "--set", "task.root=shards", "--json")
    assert code == 0, err
    assert json.loads(out)["n_finished"] == 6
    assert not (folder / ".lupi-cache").exists()


def test_images_in_no_files(folder: Path, here: Here) -> None:
    digits = re.sub(r"^task: .*$", "task: {name: digits}", SETTINGS, flags=re.MULTILINE)
    (folder / "digits.yaml").write_text(digits)
    code, _, err = here("data", "shard", "digits.yaml", "--out", "shards")
    assert code == 2
    assert "digits has no images in files, as image-folder has" in err


class StoppedError(Exception):
    pass


def test_a_killed_run_goes_on_to_the_same_numbers(folder: Path, here: Here) -> None:
    here("data", "shard", "mine.yaml", "--out", "shards", "--shard-size", "3")
    task = {"name": "image-folder", "root": "shards", "boxes": "boxes.csv", "image_size": 16}
    raw: dict[str, Any] = {
        "task": {**task, "n_val": 2, "n_test": 2},
        "network": {"width": 2, "n_hidden": 8},
        "train": {"epochs": 3, "batch_size": 4},
        "method": "het-dropout",
        "size": 6,
        "seed": 0,
    }
    settings = run_from(raw)

    def stop(row: dict[str, Any]) -> None:
        if row["epoch"] == 2:
            raise StoppedError

    with pytest.raises(StoppedError):
        run(settings, folder / "killed", stop)
    faster = run_from({**raw, "task": {**raw["task"], "decoders": 4}})
    assert faster.run_id == settings.run_id  # how many threads decode changes no number
    assert run(faster, folder / "killed") == run(settings, folder / "whole")
    weights = "checkpoint/student.safetensors"
    assert (folder / "killed" / weights).read_bytes() == (folder / "whole" / weights).read_bytes()
