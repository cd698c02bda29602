"""The comparison that columns of a file with texts stand for."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest

from lupi.comparison.defaults import LARGEST_TEXTS, default_sizes, text_comparison
from lupi.comparison.plan import make_plan
from lupi.comparison.settings import ComparisonSettings
from lupi.errors import LupiError
from lupi.loaders.text.made_reviews import write_reviews
from made_reviews import COLUMNS, write_csv


@pytest.fixture
def task(tmp_path: Path) -> dict[str, Any]:
    write_reviews(tmp_path / "my reviews.csv", 160)
    return {"path": str(tmp_path / "my reviews.csv"), **COLUMNS}


def test_it_is_a_whole_plan(task: dict[str, Any]) -> None:
    raw = text_comparison(task)
    assert (raw["name"], raw["sizes"]) == ("my-reviews", [20, 40, 80])
    plan = make_plan(ComparisonSettings.parse(raw, ""))
    assert [arm.name for arm in plan.arms] == [
        *("no-xstar", "gaussian-dropout", "het-dropout", "het-dropout/shuffled"),
        *("het-dropout/random", "contrast", "contrast/shuffled", "views", "views/shuffled"),
        *("oracle", "linear"),
    ]
    assert plan.metric.name == "accuracy"


def test_numbers_have_no_contrast(task: dict[str, Any]) -> None:
    path = Path(task["path"])
    names, *rows = csv.reader(io.StringIO(path.read_text(), newline=""))
    write_csv(path, [names, *([text, len(text), spans] for text, _, spans in rows)])
    raw = text_comparison(task)
    assert "contrast" not in raw["arms"]
    assert make_plan(ComparisonSettings.parse(raw, "")).metric.name == "r2"


def test_test_rows_without_rationales_have_no_oracle(task: dict[str, Any], tmp_path: Path) -> None:
    names, *rows = csv.reader(io.StringIO(Path(task["path"]).read_text(), newline=""))
    test = write_csv(tmp_path / "test.csv", [names[:2], *(row[:2] for row in rows)])
    assert "oracle" not in text_comparison({**task, "test": str(test)})["arms"]


def test_all_rows_are_used_up_to_a_limit() -> None:
    assert default_sizes(3000, LARGEST_TEXTS) == [200, 400, 800]
    assert default_sizes(300, LARGEST_TEXTS) == [75, 150, 300]
    assert default_sizes(60, LARGEST_TEXTS) == [30, 60]
    with pytest.raises(LupiError, match="19 rows are left for training"):
        default_sizes(19, LARGEST_TEXTS)
