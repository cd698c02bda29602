import json
from pathlib import Path

import numpy as np
import pytest
import torch

from lupi.analysis.findings import find
from lupi.analysis.observe import observe
from lupi.loaders.text.made_reviews import write_reviews
from lupi.report.sheets.analysis import write_analysis
from lupi.text_samples import read_text_samples
from lupi.train.run import run
from made_reviews import COLUMNS
from made_runs import run_from


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    path = tmp_path_factory.mktemp("reviews")
    write_reviews(path / "reviews.csv", 120)
    raw = {
        "task": {"name": "text", "path": str(path / "reviews.csv"), **COLUMNS},
        "train": {"epochs": 2, "batch_size": 16, "lr": 0.1},
        "method": "het-dropout",
        "settings": {
            "sites": ["trunk.words"],
            "draw": "example",
            "prior": {"inside": 0, "outside": 2},
            "noise": "fixed",
        },
        "size": 40,
        "seed": 1,
    }
    run(run_from(raw), path / "run")
    return path / "run"


def test_a_run_describes_the_noise_inside_and_outside_rationales(folder: Path) -> None:
    result = json.loads((folder / "result.json").read_text())
    site = result["sites"]["trunk.words"]
    assert site["variance_inside"] == pytest.approx(0, abs=1e-3)
    assert site["variance_outside"] == pytest.approx(2)
    assert result["collapsed"] is False


def test_a_run_keeps_texts_with_the_noise_at_their_words(folder: Path) -> None:
    sample = read_text_samples(folder / "samples.json")[0]
    assert any(value >= 0.5 for value in sample.region)
    for inside, variance in zip(sample.region, sample.variances["trunk.words"], strict=True):
        assert variance == pytest.approx(0 if inside else 2, abs=1e-3)
    classes = json.loads((folder / "preprocessing.json").read_text())["target"]["classes"]
    assert {sample.label, sample.prediction} <= set(classes)


def test_words_are_observed_inside_and_outside_the_rationale(folder: Path) -> None:
    seen = observe(folder, 1000)
    (site,) = seen.sites
    assert (site.unit, site.collapsed) == ("part", False)
    assert site.variances.shape == (len(seen.losses), 2)
    assert np.allclose(site.variances, [0, 2], atol=1e-3)
    assert seen.region_frac is not None
    assert (seen.region_frac > 0).all()
    assert (seen.region_frac < 1).all()
    assert seen.texts


def test_the_page_underlines_rationales(folder: Path, tmp_path: Path) -> None:
    seen = observe(folder, 1000)
    page = write_analysis(tmp_path, "run", find(seen), seen).read_text(encoding="utf-8")
    assert "<u>" in page
    assert 'style="--shade: 100%"' in page
