"""Data and rows of benchmarks/waiting.py; never its times."""

import csv
import json
from pathlib import Path

import waiting
from lupi.comparison.defaults import table_comparison


def test_the_table_has_the_shape_of_the_pupils(tmp_path: Path) -> None:
    waiting.write_pupils(tmp_path / "pupils.csv", 395)
    roles = {"target": "grade", "privileged": ["first", "second"]}
    settings = table_comparison({"path": str(tmp_path / "pupils.csv"), **roles})
    n_arms = sum(1 + len(arm.get("controls", ())) for arm in settings["arms"].values())
    assert n_arms * len(settings["sizes"]) * 8 == 240


def test_spans_mark_the_words_that_judge(tmp_path: Path) -> None:
    waiting.write_reviews(tmp_path / "reviews.csv", 4)
    with (tmp_path / "reviews.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            word = "good" if row["label"] == "1" else "bad"
            marked = [row["review"][start:end] for start, end in json.loads(row["spans"])]
            assert [text.count(word) for text in marked] == [2, 2]
            assert row["review"].count(word) == 4


def test_every_row_says_what_it_measures() -> None:
    assert all(measure.__doc__ for measure in waiting.MEASURED.values())
