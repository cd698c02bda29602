"""`lupi analyse` on students with attention: where they look in test rows."""

import json
from pathlib import Path

import pytest

from conftest import Here
from lupi.loaders.text.made_reviews import write_reviews
from lupi.records import read_result
from lupi.train.run import run
from made_runs import run_from
from made_students import image_run

ATTENTION = {"width": 2, "n_hidden": 8, "pooling": "attention"}


@pytest.mark.parametrize("method", ["guided-attention", "no-xstar"])
def test_images_with_their_region_and_attention(here: Here, tmp_path: Path, method: str) -> None:
    folder = image_run(tmp_path, method, ATTENTION)
    code, out, err = here("analyse", str(folder), "--json")
    assert code == 0, err
    found, result = json.loads(out), read_result(folder)
    assert found["pointing"] == result["metrics"]["test"]["pointing"]
    assert 0 < found["chance"] < 1
    page = (folder / "analysis/analysis.html").read_text()
    assert "Where does it look?" in page
    assert page.count("attention; predicted") == page.count("x*, which the student does not see")
    assert "attention; predicted" in page


def test_noise_on_an_attention_student_shows_both(here: Here, tmp_path: Path) -> None:
    folder = image_run(tmp_path, "het-dropout", ATTENTION)
    code, out, err = here("analyse", str(folder))
    assert code == 0, err
    assert "The student's attention has its maximum inside x*" in " ".join(out.split())
    page = (folder / "analysis/analysis.html").read_text()
    assert "What did the noise learn?" in page
    assert "Attention in test rows" in page


def test_texts_are_shaded_by_attention(here: Here, tmp_path: Path) -> None:
    path = tmp_path / "reviews.csv"
    write_reviews(path, 60)
    task = {"name": "text", "path": path, "text": "review", "target": "label", "rationale": "spans"}
    network = {"name": "cnn", "n_channels": 4, "pooling": "attention"}
    raw = {"task": task, "network": network, "train": {"epochs": 1}, "size": 20, "seed": 0}
    run(run_from({**raw, "method": "guided-attention"}), tmp_path / "run")
    code, out, err = here("analyse", str(tmp_path / "run"))
    assert code == 0, err
    assert "a place drawn evenly" in " ".join(out.split())
    assert "The shade shows the attention" in (tmp_path / "run/analysis/analysis.html").read_text()
