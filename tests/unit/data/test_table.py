from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lupi.data.tables.columns import load_table
from lupi.errors import LupiError
from made_table import HEADER, rows, settings_of, write_csv


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "deliveries.csv", rows())


def with_column(made: list[list[str]], name: str, values: list[str]) -> list[list[str]]:
    place = HEADER.index(name)
    changed = [list(row) for row in made]
    for row, value in zip(changed, values, strict=False):
        row[place] = value
    return changed


def test_features_are_all_other_columns(path: Path) -> None:
    table = load_table(settings_of(path))
    assert table.features == ("km", "van", "packed", "sent", "weight")
    assert load_table(settings_of(path, features=["km"])).features == ("km",)


@pytest.mark.parametrize("target", ["hours", "late"])
def test_rows_are_held_out_once_and_for_all(path: Path, target: str) -> None:
    table, again = (load_table(settings_of(path, target)) for _ in range(2))
    parts = [set(frame.index) for frame in table.frames]
    assert [len(part) for part in parts] == [60, 24, 36]
    assert len(set.union(*parts)) == 120
    assert [list(frame.index) for frame in again.frames] == [list(f.index) for f in table.frames]
    other = load_table(settings_of(path, target, data_seed=1))
    assert set(other.frames[2].index) != parts[2]


def test_classes_are_as_frequent_in_every_part(path: Path) -> None:
    table = load_table(settings_of(path, "late"))
    assert table.classes == ("in time", "late")
    shares = [float(y.mean()) for y in table.targets]
    assert max(shares) - min(shares) < 0.02


def test_files_for_validation_and_test(path: Path, tmp_path: Path) -> None:
    plain = [[*row[:5], *row[7:]] for row in rows(30, seed=1)]  # no privileged columns
    header = [*HEADER[:5], *HEADER[7:]]
    val = write_csv(tmp_path / "val.csv", plain[:10], header)
    test = write_csv(tmp_path / "test.csv", plain[10:], header)
    table = load_table(settings_of(path, val=val, test=test))
    assert [len(y) for y in table.targets] == [120, 10, 20]
    table = load_table(settings_of(path, test=test))
    assert [len(y) for y in table.targets] == [96, 24, 20]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "0"] * 60, "classification"),
        (["True", "False"] * 60, "classification"),
        (["a", "b", "c"] * 40, "classification"),
        (["1", "2", "3"] * 40, "regression"),
    ],
)
def test_the_kind_follows_from_the_target(tmp_path: Path, values: list[str], kind: str) -> None:
    path = write_csv(tmp_path / "a.csv", with_column(rows(), "hours", values))
    assert load_table(settings_of(path)).kind == kind
    assert load_table(settings_of(path, kind="classification")).kind == "classification"


def test_columns_may_be_named_by_numbers(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", rows(), header=None)
    columns: dict[str, Any] = {"target": 7, "privileged": [5, 6], "ignore": [8]}
    table = load_table(settings_of(path, header=False, **columns))
    assert table.privileged == ("5", "6")
    assert np.isfinite(table.targets[0]).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"target": "hour"}, "target: no column is called `hour`; did you mean `hours`"),
        ({"privileged": ["rain", "trafic"]}, "privileged: no column is called `trafic`; did you"),
        ({"ignore": ["x"]}, "ignore: no column is called `x`"),
        ({"categorical": ["x"]}, "categorical: no column is called `x`"),
        ({"features": ["x"]}, "features: no column is called `x`"),
        ({"privileged": ["hours"]}, "privileged: 'hours' is the target"),
        ({"ignore": ["rain"]}, "ignore: 'rain' is also named as privileged"),
        ({"ignore": [*HEADER[:5], "late"]}, "no column is left to predict from"),
        ({"target": "van", "kind": "regression"}, "kind: regression needs numbers"),
        ({"content": "0" * 12}, "has changed since this run was planned"),
    ],
)
def test_columns_that_can_not_be(path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(LupiError, match=message):
        load_table(settings_of(path, **changes))


@pytest.mark.parametrize(
    ("target", "values", "message"),
    [
        ("hours", ["3.5"] * 120, "target 'hours' is .*3.5.* in every row"),
        ("late", ["late"] * 120, "target 'late' is 'late' in every row"),
        ("hours", ["", "inf"], "missing or not finite in 2 of 120 rows, the first of them row 1"),
        ("late", ["late", ""], "missing or not finite in 1 of 120 rows, the first of them row 2"),
        ("late", ["lost"], "class 'lost' of 'late' has 1 row\\(s\\); 3 are needed"),
    ],
)
def test_targets_that_teach_nothing(
    tmp_path: Path, target: str, values: list[str], message: str
) -> None:
    path = write_csv(tmp_path / "a.csv", with_column(rows(), target, values))
    with pytest.raises(LupiError, match=message):
        load_table(settings_of(path, target))


def test_held_out_files_must_fit(path: Path, tmp_path: Path) -> None:
    made = rows(10, seed=1)
    lost = write_csv(tmp_path / "lost.csv", with_column(made, "late", ["lost"]))
    with pytest.raises(LupiError, match="test: class 'lost' of 'late' is not in the train rows"):
        load_table(settings_of(path, "late", test=lost))
    narrow = write_csv(tmp_path / "narrow.csv", [row[1:] for row in made], HEADER[1:])
    with pytest.raises(LupiError, match=r"narrow.csv: no column is called `km`"):
        load_table(settings_of(path, test=narrow))


def test_the_fingerprint_of_the_files_is_a_setting(path: Path) -> None:
    before = settings_of(path).resolved()["content"]
    write_csv(path, rows(seed=5))
    assert settings_of(path).resolved()["content"] != before


def test_fractions_leave_rows_to_train_on(path: Path) -> None:
    with pytest.raises(LupiError, match="must leave rows for training"):
        settings_of(path, val_frac=0.5, test_frac=0.5)
