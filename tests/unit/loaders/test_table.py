import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from lupi.errors import LupiError
from lupi.loaders.tables.cells import odd_columns
from lupi.loaders.tables.columns import Table, load_table
from lupi.loaders.tables.encoder import column_kinds
from lupi.records import Design, run_identity
from lupi.tasks.table import TableTask
from lupi.tasks.table_network import TableNetworkSettings
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


def indices(table: Table, seed: int) -> list[set[int]]:
    return [set(part.frame.index) for part in table.draw(seed).values()]


@pytest.mark.parametrize("target", ["hours", "late"])
def test_each_seed_draws_all_of_its_rows(path: Path, target: str) -> None:
    table, again = (load_table(settings_of(path, target)) for _ in range(2))
    parts = indices(table, 0)
    assert [len(part) for part in parts] == [60, 24, 36]
    assert len(set.union(*parts)) == 120
    assert indices(again, 0) == parts
    others = indices(table, 1)
    assert [len(part) for part in others] == [60, 24, 36]
    assert all(part != other for part, other in zip(parts, others, strict=True))
    assert table.design == Design(n_pool=120, test="per-seed", n_test=36)


def test_classes_are_as_frequent_in_every_part(path: Path) -> None:
    table = load_table(settings_of(path, "late"))
    assert table.classes == ("in time", "late")
    for seed in range(3):
        shares = [float(part.y.mean()) for part in table.draw(seed).values()]
        assert max(shares) - min(shares) < 0.02


def test_files_for_validation_and_test(path: Path, tmp_path: Path) -> None:
    plain = [[*row[:5], *row[7:]] for row in rows(30, seed=1)]  # no privileged columns
    header = [*HEADER[:5], *HEADER[7:]]
    val = write_csv(tmp_path / "val.csv", plain[:10], header)
    test = write_csv(tmp_path / "test.csv", plain[10:], header)
    table = load_table(settings_of(path, val=val, test=test))
    assert [len(part) for part in indices(table, 0)] == [120, 10, 20]
    assert table.design == Design(n_pool=120, test="fixed", n_test=20)
    table = load_table(settings_of(path, test=test))
    first, second = indices(table, 0), indices(table, 1)
    assert [len(part) for part in first] == [96, 24, 20]
    assert first[1] != second[1]
    assert first[2] == second[2]
    assert table.design == Design(n_pool=120, test="fixed", n_test=20)


def test_a_split_column_fixes_the_test_rows(tmp_path: Path) -> None:
    named = ["test", "val", *["train"] * 8]
    made = [[*row, named[i % 10]] for i, row in enumerate(rows())]
    path = write_csv(tmp_path / "a.csv", made, [*HEADER, "part"])
    table = load_table(settings_of(path, split="part"))
    assert indices(table, 0) == indices(table, 1)
    assert indices(table, 0)[2] == set(range(0, 120, 10))
    assert "part" not in table.features
    assert table.design == Design(n_pool=96, test="fixed", n_test=12)

    without_val = [[*row[:-1], row[-1].replace("val", "train")] for row in made]
    write_csv(path, without_val, [*HEADER, "part"])
    table = load_table(settings_of(path, split="part"))
    assert indices(table, 0)[2] == indices(table, 1)[2] == set(range(0, 120, 10))
    assert indices(table, 0)[1] != indices(table, 1)[1]

    write_csv(path, [[*row[:-1], "both"] for row in made], [*HEADER, "part"])
    with pytest.raises(LupiError, match="split: column 'part' has 'both'; expected train, val or"):
        load_table(settings_of(path, split="part"))


def people(n_people: int = 30) -> list[list[str]]:
    return [[*row, f"p{(i * i) % n_people}"] for i, row in enumerate(rows())]


@pytest.mark.parametrize("target", ["hours", "late"])
def test_a_group_is_in_one_part_only(tmp_path: Path, target: str) -> None:
    path = write_csv(tmp_path / "a.csv", people(), [*HEADER, "person"])
    table = load_table(settings_of(path, target, groups="person"))
    assert "person" not in table.features
    tests = []
    for seed in range(5):
        parts = table.draw(seed)
        groups = [set(part.frame["person"]) for part in parts.values()]
        assert sum(map(len, groups)) == len(set.union(*groups))
        sizes = [len(part.y) for part in parts.values()]
        assert sum(sizes) == 120
        assert table.division.n_train <= sizes[0]
        assert 12 <= sizes[1] <= 24
        assert 18 <= sizes[2] <= 36
        tests.append(frozenset(groups[2]))
    assert len(set(tests)) > 1
    assert table.design.groups == "person"
    assert "new groups (person)" in table.design.scope(20)


def test_groups_that_can_not_be_kept_together(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", people(2), [*HEADER, "person"])
    with pytest.raises(LupiError, match="groups: none of the 2 groups fits into 20% of 120 rows"):
        load_table(settings_of(path, groups="person"))
    made = [[*row, "train" if i < 60 else "test"] for i, row in enumerate(people())]
    path = write_csv(tmp_path / "b.csv", made, [*HEADER, "person", "part"])
    with pytest.raises(LupiError, match="groups: 'p0' has rows in train and in test"):
        load_table(settings_of(path, groups="person", split="part"))


def test_rows_in_order_of_time(path: Path) -> None:
    table = load_table(settings_of(path, time="sent"))
    assert "sent" not in table.features
    assert indices(table, 0) == indices(table, 1)
    train, val, test = (part.frame["sent"] for part in table.draw(0).values())
    assert max(train) < min(val)
    assert max(val) < min(test)
    assert 36 <= len(test) <= 40  # rows of one day stay together
    design = table.design
    assert (design.test, design.time, design.n_pool) == ("fixed", "sent", len(train))
    assert "later rows, in order of sent" in design.scope(20)


def test_later_rows_of_known_groups_are_left_out(tmp_path: Path) -> None:
    made = [[*row, f"p{i // 4}" if i % 7 else "always"] for i, row in enumerate(rows())]
    made = with_column(made, "sent", [f"2024-{1 + i // 20:02}-{1 + i % 20:02}" for i in range(120)])
    path = write_csv(tmp_path / "a.csv", made, [*HEADER, "person"])
    table = load_table(settings_of(path, time="sent", groups="person"))
    parts = table.draw(0)
    train, val, test = (part.frame["sent"] for part in parts.values())
    assert max(train) < min(val)
    assert max(val) < min(test)
    people = [set(part.frame["person"]) for part in parts.values()]
    assert sum(map(len, people)) == len(set.union(*people))
    assert "always" in people[0]
    assert table.division.left_out == 120 - len(train) - len(val) - len(test) > 0
    assert "later rows of new groups (person), in order of sent" in table.design.scope(20)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"time": "van"}, "time: column 'van' has 'old'; expected numbers or ISO dates"),
        ({"time": "weight"}, "time: column 'weight' is empty or not finite in row"),
        ({"time": "packed_at"}, "time: no column is called `packed_at`"),
        ({"groups": "weight"}, "groups: column 'weight' is empty in row"),
        ({"groups": "van", "time": "sent"}, "no later row of a new group is left"),
        ({"split": "van", "test": "test.csv"}, "use either a split column or files"),
    ],
)
def test_columns_that_can_not_divide_rows(
    path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(LupiError, match=message):
        load_table(settings_of(path, **changes))


def test_a_few_cells_that_are_no_numbers_are_missing(tmp_path: Path) -> None:
    place = HEADER.index("km")
    made = rows(200)
    made[7][place], made[90][place] = "n.a.?", "12 km"
    path = write_csv(tmp_path / "a.csv", made)
    table = load_table(settings_of(path))
    (cells,) = table.bad_cells
    assert (cells.column, cells.n, cells.n_rows) == ("km", 2, 200)
    assert cells.examples == ("n.a.?", "12 km")
    assert table.given["train"].frame["km"].isna().sum() == 2
    assert not load_table(settings_of(path, categorical=["km"])).bad_cells
    for i in range(0, 200, 5):
        made[i][place] = "far"
    table = load_table(settings_of(write_csv(tmp_path / "b.csv", made)))
    assert not table.bad_cells  # one in five: these are words
    assert set(table.given["train"].frame["km"]) > {"far"}


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
    assert np.isfinite(table.given["train"].y).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"target": "hour"}, "target: no column is called `hour`; did you mean `hours`"),
        ({"privileged": ["rain", "trafic"]}, "privileged: no column is called `trafic`; did you"),
        ({"ignore": ["x"]}, "ignore: no column is called `x`"),
        ({"categorical": ["x"]}, "categorical: no column is called `x`"),
        ({"features": ["x"]}, "features: no column is called `x`"),
        ({"privileged": ["hours"]}, "privileged: 'hours' is the target"),
        ({"ignore": ["rain"]}, "ignore: 'rain' is also privileged"),
        ({"ignore": [*HEADER[:5], "late"]}, "no feature is left"),
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
    before = settings_of(path).with_content().content
    write_csv(path, rows(seed=5))
    assert settings_of(path).with_content().content != before


def test_fractions_leave_rows_to_train_on(path: Path) -> None:
    with pytest.raises(LupiError, match="must leave rows for training"):
        settings_of(path, val_frac=0.5, test_frac=0.5)


def test_columns_that_tell_nothing_or_may_be_others() -> None:
    n = 100
    frame = pd.DataFrame(
        {
            "same": ["a"] * n,
            "empty": [None] * n,
            "name": [f"person {i}" for i in range(n)],
            "km": ["far" if i % 5 == 0 else str(i % 7) for i in range(n)],
            "van": ["old", "new"] * (n // 2),
            "weight": np.arange(n) / 3,
        }
    )
    found = list(odd_columns(frame, column_kinds(frame)))
    assert [sentence.split("'")[1] for sentence in found] == ["same", "empty", "name", "km"]
    assert "has 100 different texts in 100 rows" in found[2]
    assert "was taken for categories, as only 80 of 100 cells are numbers" in found[3]


def test_rows_without_a_target_are_left_out_if_asked(tmp_path: Path) -> None:
    made = rows(120)
    for row in made[:7]:
        row[HEADER.index("hours")] = ""
    path = write_csv(tmp_path / "gaps.csv", made)
    with pytest.raises(LupiError, match=r"missing or not finite in 7 of 120 rows.*missing_target"):
        load_table(settings_of(path))
    table = load_table(settings_of(path, missing_target="drop"))
    assert (table.n_dropped, len(table.given["train"].y)) == (7, 113)
    task = TableTask(settings_of(path, missing_target="drop"), TableNetworkSettings())
    assert task.finding_counts["row without a target, left out"] == 7
    assert "7 rows without a target were left out" in {fact.text for fact in task.facts}
    assert len(task.splits(20, 0).train) == 20


def test_an_unknown_encoding_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LupiError, match="unknown encoding 'latin9000'"):
        settings_of(tmp_path / "a.csv", encoding="latin9000")


def test_some_rows_of_a_large_table(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "deliveries.csv", rows(120))
    settings = settings_of(path, max_rows=60)
    table = load_table(settings)
    assert len(table.given["train"].y) == 60
    task = TableTask(settings, TableNetworkSettings())
    assert "60 of 120, drawn at random (task.max_rows)" in str(task.facts)
    of_all = {"task": settings_of(path).resolved()}
    older = {"task": {key: v for key, v in of_all["task"].items() if key != "max_rows"}}
    assert run_identity(of_all) == run_identity(older)  # of a record without the setting
    assert run_identity({"task": settings.resolved()}) != run_identity(of_all)


def test_by_default_a_table_of_any_size_takes_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of(write_csv(tmp_path / "deliveries.csv", rows(120)))
    assert "drawn at random" not in str(TableTask(settings, TableNetworkSettings()).facts)
    monkeypatch.setattr("lupi.loaders.tables.columns.MAX_ROWS", 100)
    facts = TableTask(settings, TableNetworkSettings()).facts
    assert "100 of 120, drawn at random (task.max_rows)" in str(facts)
    monkeypatch.setattr("lupi.loaders.tables.columns.MAX_VALUES", 600)
    assert len(load_table(settings).given["train"].y) < 100  # it has many columns
    assert len(load_table(settings_of(settings.path, max_rows=120)).given["train"].y) == 120


def test_a_table_without_xstar(tmp_path: Path) -> None:
    made = with_column(with_column(rows(), "rain", [""] * 120), "traffic", [""] * 120)
    with pytest.raises(LupiError, match=r"no row has a value in rain, traffic: there is no\s+x\*"):
        load_table(settings_of(write_csv(tmp_path / "a.csv", made)))


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ([1, 2], "column 'km' has a list, .*split it into columns"),
        ({"a": 1}, "column 'km' has a dict"),
        (1e307, r"column 'km' has numbers up to 1e\+307"),
    ],
)
def test_cells_that_no_table_has(tmp_path: Path, cell: Any, message: str) -> None:
    path = tmp_path / "a.jsonl"
    lines = [dict(zip(HEADER, row, strict=True)) | {"km": cell} for row in rows()]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with pytest.raises(LupiError, match=message):
        load_table(settings_of(path))


def test_renamed_columns_are_reported(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", [[*row, row[0]] for row in rows()], [*HEADER, "km"])
    task = TableTask(settings_of(path), TableNetworkSettings())
    assert "called km.1" in str(task.facts)


def test_too_many_columns_are_refused_with_what_to_do(tmp_path: Path) -> None:
    names = [f"c{i}" for i in range(20_001)]
    path = tmp_path / "wide.csv"
    lines = [",".join([*names, "rain", "traffic", "hours", "late"])] * 2
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(LupiError, match=r"20,001 columns as x; at most 20,000 .*task\.features"):
        load_table(settings_of(path))
