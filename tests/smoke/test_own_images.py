"""Someone's own folder of images, through the real command."""

import json
from pathlib import Path

import pytest
import yaml

from conftest import Here
from made_images import image_folder


@pytest.fixture
def settings(tmp_path: Path) -> str:
    image_folder(tmp_path / "pets", n_images=8)
    comparison = {
        "name": "pets",
        "task": {
            "name": "image-folder",
            "root": "pets",
            "boxes": "boxes.csv",
            "image_size": 16,
            "n_val": 2,
            "n_test": 2,
        },
        "network": {"width": 2, "n_hidden": 8},
        "train": {"epochs": 1},
        "arms": {"no-xstar": {"method": "no-xstar"}, "het-dropout": {"method": "het-dropout"}},
        "sizes": [8],
        "seeds": 1,
    }
    (tmp_path / "pets.yaml").write_text(yaml.safe_dump(comparison))
    return "pets.yaml"


def test_bad_files_stop_a_comparison_or_are_counted(
    tmp_path: Path, settings: str, here: Here
) -> None:
    (tmp_path / "pets/cats/broken.jpg").write_bytes(b"nothing")
    code, _, said = here("compare", settings)
    assert code == 2
    assert "cats/broken.jpg: unreadable image" in said
    assert "Traceback" not in said
    skip = ("compare", settings, "--set", "task.on_bad=skip", "--json", "--workers", "1")
    _, printed, said = here(*skip)
    assert json.loads(printed)["n_finished"] == 2
    assert "unreadable image: 1, the first in cats/broken.jpg" in said
    result = next((tmp_path / "runs/pets").glob("*/result.json"))
    assert json.loads(result.read_text())["data"]["unreadable image"] == 1
    assert [path for path in (tmp_path / ".lupi-cache").iterdir() if path.is_dir()]


def test_a_mistake_in_an_arm_shows_before_images_are_decoded(
    tmp_path: Path, settings: str, here: Here
) -> None:
    typo = ("compare", settings, "--set", "arms.het-dropout.settings.betta=1")
    code, _, said = here(*typo)
    assert code == 2
    assert "did you mean `beta`" in said
    assert not (tmp_path / ".lupi-cache").exists()


def test_a_folder_with_masks_in_one_command(tmp_path: Path, here: Here) -> None:
    image_folder(tmp_path / "pets", n_images=24)
    small = ("task.image_size=16", "network={name: small-vgg, width: 2, pooling: attention}")
    sets = [
        part for s in (*small, "train.epochs=1", "seeds=1", "sizes=[8]") for part in ("--set", s)
    ]
    code, printed, said = here("compare", "pets", "--json", "--workers", "1", *sets)
    assert code == 0, said
    assert "classes from folders: cats 24, dogs 24" in said
    assert "48 boxes in boxes.csv (CSV) for 48 of 48 images" in said
    arms = {arm["name"] for arm in json.loads(printed)["arms"]}
    assert {"no-xstar", "attention", "guided-attention", "het-dropout/shuffled"} <= arms
