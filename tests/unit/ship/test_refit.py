"""Students that are trained on all labels, and what is said about them."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import lupi
from conftest import Here
from lupi.errors import LupiError
from lupi.interface.result import Comparison
from lupi.loaders.text.made_reviews import write_reviews
from lupi.ship.pick import pick_run
from lupi.ship.refit import refit
from lupi.train.settings import RunSettings
from made_images import image_folder
from made_reviews import COLUMNS

FEW: dict[str, Any] = {
    **COLUMNS,
    "seeds": 2,
    "changes": {"train.epochs": 1},
    "processes": 1,
    "quiet": True,
}


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("texts")
    write_reviews(folder / "reviews.csv", 120)
    rows = pd.read_csv(folder / "reviews.csv")
    rows.to_csv(folder / "reviews.csv", index=False)
    arms = {"no-xstar": "no-xstar", "views": {"method": "views", "controls": []}}
    lupi.compare(folder / "reviews.csv", arms=arms, sizes=[30], folder=folder / "runs", **FEW)
    return folder / "runs"


def test_it_has_seen_the_test_rows(texts: Path) -> None:
    refitted = refit(texts, "views")
    settings = json.loads((refitted.folder / "settings.json").read_text())
    assert settings["method"] == "views"
    assert refitted.judged.cell.size == 30
    assert refitted.n_rows == settings["size"] > 0.8 * 120
    assert f"trained on {refitted.n_rows} labels, {refitted.n_rows - 30} more" in refitted.about
    assert refitted.judged.cell.mean is not None
    assert f"{refitted.judged.cell.mean:.4g}" in refitted.about
    chosen = pick_run(texts, "views").folder
    before = RunSettings.parse(json.loads((chosen / "settings.json").read_text()), "")
    assert settings["train"] == before.train.resolved()
    changed = (refitted.folder / "result.json").stat().st_mtime_ns
    assert refit(texts, "views").folder == refitted.folder  # only read
    assert (refitted.folder / "result.json").stat().st_mtime_ns == changed
    assert len(Comparison(texts).record.runs) == 4  # it is not part of the comparison


def test_from_python_and_from_the_command(texts: Path, tmp_path: Path, here: Here) -> None:
    student = Comparison(texts).student("views", refit=True)
    with pytest.raises(LupiError, match="refit=True trains on all labels"):
        Comparison(texts).student(size=30, refit=True)
    code, printed, said = here(
        "export", str(texts), "--refit", "--arm", "views", "--out", "out", "--json"
    )
    assert code == 0, said
    assert json.loads(printed)["n_labels"] == refit(texts, "views").n_rows
    card = (tmp_path / "out/MODEL_CARD.md").read_text()
    assert "no test score of its own" in card
    assert "| score of this run" not in card
    shipped = lupi.load_student(tmp_path / "out")
    assert shipped.predict(["an awful lamp"]) == student.predict(["an awful lamp"])
    assert here("export", str(texts), "--refit", "--size", "30", "--out", "x")[0] == 2


def test_images_keep_classes_and_groups(tmp_path: Path) -> None:
    image_folder(tmp_path / "pets", n_images=14)
    small = {"task.image_size": 16, "task.cache": str(tmp_path / "cache"), "train.epochs": 1}
    raw = {
        "name": "pets",
        "task": {"name": "image-folder", "root": str(tmp_path / "pets"), "n_val": 2, "n_test": 5},
        "network": {"width": 2, "n_hidden": 8},
        "arms": {"no-xstar": {"method": "no-xstar"}},
        "sizes": [8],
        "seeds": 2,
    }
    lupi.compare(raw, changes=small, folder=tmp_path / "runs", processes=1, quiet=True)
    refitted = refit(tmp_path / "runs")
    assert refitted.n_rows == 2 * (14 - 1 - 1)


def test_only_a_comparison_can_be_refitted(tmp_path: Path) -> None:
    with pytest.raises(LupiError, match="is not the folder of a comparison"):
        refit(tmp_path)


def test_what_a_student_takes(texts: Path) -> None:
    student = Comparison(texts).student("views")
    some = ["an awful lamp", "the sound is superb"]
    expected = student.predict(some)
    assert student.predict(pd.Series(some)) == expected
    assert student.predict(pd.DataFrame({COLUMNS["text"]: some, "other": 1})) == expected
    assert student.predict(tuple(some)) == expected
    assert student.predict([]) == []
    assert "known words) to" in repr(student)
    marked = student.predict(["xyzzy plugh", "an awful lamp"])
    assert marked[0]["unknown"] == "no known word"
    assert "unknown" not in marked[1]
