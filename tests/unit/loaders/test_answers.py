"""Several answers to one item: a row each in training, one row when held out."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from lupi.errors import LupiError
from lupi.loaders.tables.columns import Table, load_table
from lupi.loaders.tables.settings import TableSettings
from lupi.tasks.table import TableRun, TableTask
from lupi.tasks.table_network import TableNetworkSettings

N_ITEMS = 40


def votes(folder: Path, **columns: Any) -> Path:
    """40 items with three answers each: two right ones, and the third always `no`."""
    item = np.repeat(np.arange(N_ITEMS), 3)
    true = np.where(item % 2, "yes", "no")
    frame = pd.DataFrame(
        {
            "item": [f"i{i}" for i in item],
            "x": item * 1.0,
            "who": [f"a{i}" for i in np.tile(np.arange(60), 2)],
            "answer": np.where(np.arange(len(item)) % 3 == 2, "no", true),
            "true": true,
            "stars": np.arange(len(item)) % 3 + item,
            **columns,
        }
    )
    path = folder / "votes.csv"
    frame.to_csv(path, index=False)
    return path


def settings_of(path: Path, **changes: Any) -> TableSettings:
    raw = {
        "path": path,
        "target": "answer",
        "features": ["x"],
        "privileged": ["who"],
        "items": "item",
        "ignore": ["stars"],
    }
    return TableSettings.parse({**raw, **changes}, "task")


def table_of(folder: Path, **changes: Any) -> Table:
    return load_table(settings_of(votes(folder), **changes))


def test_answers_to_one_item_are_never_divided_and_a_held_out_item_is_one_row(
    tmp_path: Path,
) -> None:
    table = table_of(tmp_path)
    parts = table.draw(3)
    items = {part: set(rows.frame["item"]) for part, rows in parts.items()}
    assert not items["train"] & (items["val"] | items["test"])
    assert not items["val"] & items["test"]
    assert len(parts["train"].y) == 3 * len(items["train"])
    assert len(parts["test"].y) == len(items["test"]) == table.design.n_test
    assert parts["test"].frame["item"].is_unique


@pytest.mark.parametrize("gold", [None, "true"])
def test_items_are_scored_against_the_majority_or_the_gold_label(
    tmp_path: Path, gold: str | None
) -> None:
    table = table_of(tmp_path, gold=gold)
    test = table.draw(0)["test"]
    said = [table.classes[y] for y in test.y]
    assert said == test.frame["true"].tolist()  # two of three answers are right


def test_gold_counts_where_the_majority_is_wrong(tmp_path: Path) -> None:
    wrong = np.where(np.repeat(np.arange(N_ITEMS), 3) % 2, "no", "yes")
    path = votes(tmp_path, true=wrong)
    table = load_table(settings_of(path, gold="true"))
    test = table.draw(0)["test"]
    assert [table.classes[y] for y in test.y] == test.frame["true"].tolist()


def test_numbers_are_averaged(tmp_path: Path) -> None:
    table = table_of(tmp_path, target="stars", kind="regression", ignore=["answer", "true"])
    test = table.draw(0)["test"]
    assert test.y.tolist() == (test.frame["x"] + 1).tolist()


def test_a_tie_goes_to_the_answer_that_is_given_more_often(tmp_path: Path) -> None:
    answers = np.tile(["b", "a", "c"], N_ITEMS)
    answers[:6] = "b"
    table = load_table(settings_of(votes(tmp_path, answer=answers), test_frac=0.9, val_frac=0.05))
    assert {table.classes[y] for y in table.draw(1)["test"].y} <= {"b", "a"}
    rows = table.given["train"]
    assert table.answers is not None
    assert {table.classes[y] for y in table.answers.scored_once(rows).y} == {"b"}


def test_every_annotator_has_a_place_and_unseen_ones_share_one(tmp_path: Path) -> None:
    task = TableTask(settings_of(votes(tmp_path)), TableNetworkSettings()).for_run(50, 0)
    train = next(iter(task.splits(50, 0).train.batches(50)))
    assert train.xstar is not None
    assert isinstance(task.run, TableRun)
    who = task.run.parts["train"].frame["who"]
    n_twice = int((who.value_counts() >= 2).sum())
    assert task.xstar_dim == n_twice + 1
    assert (train.xstar.sum(1) == 1).all()
    revealed = next(iter(task.splits(50, 0, reveal=True).test.batches(50)))
    assert revealed.xstar is not None
    assert revealed.xstar[:, -1].any()  # answers by somebody without answers in training


def test_more_than_a_thousand_annotators(tmp_path: Path) -> None:
    n = 6000
    frame = pd.DataFrame(
        {
            "x": np.arange(n) % 7,
            "who": [f"w{i % 1500}" for i in range(n)],
            "answer": np.where(np.arange(n) % 2, "yes", "no"),
        }
    )
    frame.to_csv(tmp_path / "many.csv", index=False)
    settings = settings_of(tmp_path / "many.csv", items=None, ignore=[])
    task = TableTask(settings, TableNetworkSettings()).for_run(3000, 0)
    assert 1000 < task.xstar_dim <= 1501


def test_facts_say_what_items_are_scored_against(tmp_path: Path) -> None:
    task = TableTask(settings_of(votes(tmp_path), gold="true"), TableNetworkSettings())
    about = {fact.about: fact.text for fact in task.facts}["items"]
    assert about == "40 (item), 3 answers each; held-out items are scored once, against true"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"items": None, "gold": "true"}, "gold needs a column with the items"),
        ({"time": "x"}, "use either time or items"),
        ({"gold": "who"}, "gold: 'a0' in column 'who' does not occur among the answers"),
        ({"gold": "sure"}, "gold: no column is called `sure`"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(LupiError, match=message):
        table_of(tmp_path, **changes)


def test_an_item_in_two_groups_and_a_missing_gold_label_are_refused(tmp_path: Path) -> None:
    path = votes(tmp_path, day=np.arange(3 * N_ITEMS) % 2)
    with pytest.raises(LupiError, match="items: 'i0' is in the groups '0' and '1' of 'day'"):
        load_table(settings_of(path, groups="day"))
    path = votes(tmp_path, true=[*["yes"] * 119, None])
    with pytest.raises(LupiError, match="gold: column 'true' is empty in 1 of 120 rows"):
        load_table(settings_of(path, gold="true"))
