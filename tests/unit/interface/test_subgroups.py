"""Results by subgroup: `--by COLUMN`."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import lupi
from lupi.errors import LupiError
from lupi.loaders.split_columns import subgroups_of

FEW: dict[str, Any] = {
    "arms": ["het-dropout", "linear", "oracle"],
    "sizes": [40],
    "seeds": 2,
    "changes": {"train.epochs": 1, "train.steps_per_epoch": 2},
    "processes": 1,
    "quiet": True,
}


def frame(n: int = 160) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    made = pd.DataFrame({"a": rng.normal(size=n), "s": rng.normal(size=n)})
    made["site"] = rng.choice(["north", "south"], n)
    made["y"] = np.where(made["a"] + made["s"] > 0, "yes", "no")
    return made


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> lupi.Comparison:
    folder = tmp_path_factory.mktemp("by") / "records"
    return lupi.compare(frame(), target="y", privileged="s", by="site", folder=folder, **FEW)


def test_all_test_rows_are_the_rows_of_the_subgroups(done: lupi.Comparison) -> None:
    rows = done.to_frame()
    low = rows[["test/north_accuracy", "test/south_accuracy"]].min(axis=1)
    high = rows[["test/north_accuracy", "test/south_accuracy"]].max(axis=1)
    assert rows["test_accuracy"].between(low - 1e-9, high + 1e-9).all()
    assert (rows["test/north_accuracy"] != rows["test/south_accuracy"]).any()
    assert set(rows["method"]) == {"no-xstar", "het-dropout", "linear", "oracle"}


def test_table_page_and_json_show_subgroups(done: lupi.Comparison) -> None:
    assert "By site, n = 40, accuracy, %" in str(done)
    assert "not corrected for the number of" in str(done)
    assert any(fact.about == "subgroups" and "north" in fact.text for fact in done.record.facts)
    found = json.loads(json.dumps(done.to_dict()))["subgroups"]
    assert [(group["column"], group["name"]) for group in found] == [
        ("site", "north"),
        ("site", "south"),
    ]
    arms = {arm["name"]: arm["cells"][0] for arm in found[0]["arms"]}
    runs = done.to_frame().query("arm == 'het-dropout'")
    assert arms["het-dropout"]["mean"] == pytest.approx(runs["test/north_accuracy"].mean())
    page = done.report().read_text()
    assert "Results by site" in page
    assert page.count(">north</td>") == page.count(">south</td>") == 1


def test_the_column_has_no_effect_on_students(done: lupi.Comparison, tmp_path: Path) -> None:
    """A feature stays one, and scores are those of a comparison without subgroups."""
    without = lupi.compare(frame(), target="y", privileged="s", folder=tmp_path, **FEW)
    assert without.to_frame()["score"].equals(done.to_frame()["score"])
    assert "subgroup" not in str(without)


def test_texts_by_subgroup(tmp_path: Path) -> None:
    texts = pd.DataFrame(
        {
            "text": [f"a {'good' if i % 2 else 'poor'} film, number {i}" for i in range(80)],
            "label": ["pos" if i % 2 else "neg" for i in range(80)],
            "spans": [[[2, 6]]] * 80,
            "origin": ["edited" if i % 4 < 2 else "natural" for i in range(80)],
        }
    )
    result = lupi.compare(
        texts,
        text="text",
        target="label",
        rationale="spans",
        by="origin",
        folder=tmp_path,
        **{**FEW, "sizes": [20]},
    )
    assert [group.name for group in result.summary.subgroups] == ["edited", "natural"]


def test_numbers_are_shown_by_quarters() -> None:
    ages = pd.Series([float(i) for i in range(100)], name="age")
    found = subgroups_of([ages], "age")
    assert found.names == ("0 to 24", "25 to 49", "50 to 74", "75 to 99")
    assert np.bincount(found.codes).tolist() == [25] * 4
    few = subgroups_of([pd.Series([10, 9, np.nan, 9])], "grade")
    assert few.names == ("9", "10", "missing")


def test_too_many_subgroups_are_refused() -> None:
    names = pd.Series([f"p{i}" for i in range(50)])
    with pytest.raises(LupiError, match="'name' has 50 values; expected 2 to 12 subgroups"):
        subgroups_of([names], "name")
