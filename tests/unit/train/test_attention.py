"""Where students look in test rows: pointing score, samples, report."""

from pathlib import Path
from typing import Any

import numpy as np

from lupi.loaders.text.made_reviews import write_reviews
from lupi.records import read_comparison, read_result
from lupi.report.samples import read_looks
from lupi.text_samples import read_text_samples
from lupi.train.run import run
from lupi.unpack import read_arrays
from lupi.verdict.summary import summarise
from made_runs import run_from
from made_students import image_run

ATTENTION = {"width": 2, "n_hidden": 8, "pooling": "attention"}


def test_a_run_with_attention_records_where_it_looks(tmp_path: Path) -> None:
    folder = image_run(tmp_path, "guided-attention", ATTENTION)
    result = read_result(folder)
    assert 0 <= result["metrics"]["test"]["pointing"] <= 1
    assert isinstance(result["collapsed"], bool)
    samples = read_arrays(folder / "attention.npz")
    n, side = len(samples["label"]), 16
    assert samples["x"].shape == (n, side, side, 3)
    assert samples["mask"].shape == (n, side, side)
    assert samples["attention"].shape == (n, 4, 4)
    assert np.all(samples["attention"].sum((1, 2)) <= 1 + 1e-5)


def test_maps_of_a_frozen_network_are_shown_as_pixels(tmp_path: Path) -> None:
    network = {"name": "efficientnet-lite0", "pooling": "both", "n_channels": 4}
    task: dict[str, Any] = {"image_size": 32, "stored_size": None}
    folder = image_run(tmp_path, "no-xstar", network, **task)
    assert "pointing" in read_result(folder)["metrics"]["test"]
    assert read_arrays(folder / "attention.npz")["x"].shape[1:] == (32, 32, 3)


def test_a_run_without_attention_has_no_pointing_score(tmp_path: Path) -> None:
    folder = image_run(tmp_path, "no-xstar")
    assert "pointing" not in read_result(folder)["metrics"]["test"]
    assert not (folder / "attention.npz").exists()


def test_texts_show_the_attention_of_each_word(tmp_path: Path) -> None:
    path = tmp_path / "reviews.csv"
    write_reviews(path, 60)
    task = {"name": "text", "path": path, "text": "review", "target": "label", "rationale": "spans"}
    network = {"name": "cnn", "n_channels": 4, "pooling": "attention"}
    raw = {"task": task, "network": network, "train": {"epochs": 1}, "size": 20, "seed": 0}
    run(run_from({**raw, "method": "guided-attention"}), tmp_path / "run")
    assert "pointing" in read_result(tmp_path / "run")["metrics"]["test"]
    samples = read_text_samples(tmp_path / "run/attention.json")
    assert samples
    assert all(sum(s.variances["attention"]) <= 1 + 1e-4 for s in samples)


def test_the_page_shows_plain_and_taught_attention_side_by_side(here: Any, tmp_path: Path) -> None:
    (tmp_path / "look.yaml").write_text(
        "name: look\ntask: {name: digits}\nnetwork: {width: 4, pooling: attention}\n"
        "train: {epochs: 1}\nsizes: [40]\nseeds: [0]\n"
        "arms:\n  no-xstar: {method: no-xstar}\n"
        "  guided-attention: {method: guided-attention, controls: []}\n"
    )
    code, out, err = here("compare", "look.yaml")
    assert code == 0, err
    assert "maximum inside x*" in " ".join(out.split())
    record = read_comparison(tmp_path / "runs/look")
    warnings: list[str] = []
    looks = read_looks(record, summarise(record), warnings)
    assert not warnings
    assert looks is not None
    assert looks.arms == ("no-xstar", "guided-attention")
    assert looks.album is not None
    assert all(len(sample.maps) == 2 for sample in looks.album.samples)
    page = (tmp_path / "runs/look/report.html").read_text()
    assert "Where students look" in page
