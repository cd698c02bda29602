"""Rows that are nearly equal and may be divided between training and test."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from lupi.loaders.division import Division, given_parts
from lupi.loaders.near_copies import (
    Pairs,
    divided,
    equal_texts,
    near_copy_warnings,
    near_rows,
    near_texts,
)
from lupi.loaders.tables.settings import TableSettings
from lupi.tasks.table import TableTask
from lupi.tasks.table_network import TableNetworkSettings
from lupi.tasks.text.network import TextNetworkSettings
from lupi.tasks.text.settings import TextSettings
from lupi.tasks.text.task import TextTask

N = 60


def made_texts(rng: np.random.Generator, n: int = N) -> list[NDArray[np.int32]]:
    return [rng.integers(0, 500, rng.integers(20, 40)).astype(np.int32) for _ in range(n)]


def edited(text: NDArray[np.int32]) -> NDArray[np.int32]:
    return np.concatenate([text[:10], [999], text[11:]]).astype(np.int32)


def test_edited_texts_are_found_and_others_are_not() -> None:
    texts = made_texts(np.random.default_rng(0))
    assert near_texts(texts).n_rows == 0
    pairs = near_texts([*texts, *map(edited, texts[:20])])
    assert pairs.n_rows == 40
    assert {(i, j) for i, j in zip(pairs.first, pairs.second, strict=True) if i < j} == {
        (i, N + i) for i in range(20)
    }


def test_equal_texts_are_not_near_copies() -> None:
    texts = made_texts(np.random.default_rng(0))
    assert near_texts([*texts, texts[3]]).n_rows == 0
    found = equal_texts([*texts, texts[3]])
    assert (found.first.tolist(), found.second.tolist()) == ([N], [3])


@pytest.mark.parametrize("n_features", [5, 20])
def test_noisy_copies_of_rows_are_found(n_features: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, n_features)).astype(np.float32)
    assert near_rows(x).n_rows == 0
    x[200:] = x[:200] + 0.003 * rng.normal(size=(200, n_features)).astype(np.float32)
    assert near_rows(x).n_rows > 300
    x[200:] = x[:200]
    assert near_rows(x).n_rows == 0  # equal rows are another finding


def test_grades_and_categories_are_not_near_copies() -> None:
    x = np.random.default_rng(0).integers(0, 3, (300, 8)).astype(np.float32)
    assert near_rows(x).n_rows == 0


def test_pairs_of_one_group_or_one_given_part_do_not_matter() -> None:
    pairs = Pairs(np.array([0, 1]), np.array([2, 3]), 4)
    labels = np.zeros(4, dtype=np.int64)
    drawn = Division(labels, given_parts({"train": 4}), {"val": 0.2, "test": 0.3})
    assert divided(pairs, drawn).n_rows == 2
    grouped = Division(labels, drawn.given, drawn.drawn, groups=np.array([0, 1, 0, 2]))
    assert divided(pairs, grouped).first.tolist() == [1]
    given = Division(labels, given_parts({"train": 3, "val": 0, "test": 1}), {})
    assert divided(pairs, given).first.tolist() == [1]


def test_the_warning_says_what_to_do() -> None:
    labels = np.array([0, 1, 1, 0])
    division = Division(labels, given_parts({"train": 4}), {"test": 0.3})
    pairs = Pairs(np.array([0, 1]), np.array([2, 3]), 4)
    (text,) = near_copy_warnings(pairs, division, "texts", [5, 6, 7, 8])
    assert text.startswith("2 of 4 texts are nearly copies of others, such as rows 5 and 7")
    assert "100% of such pairs have different classes" in text
    assert "below chance" in text
    assert "name the column that says so as `groups`" in text


def test_pairs_of_edited_texts_and_their_groups(tmp_path: Path) -> None:
    rng, rows = np.random.default_rng(0), []
    for i in range(40):
        words = [f"w{n}" for n in rng.integers(0, 400, 25)]
        for label, word in (("pos", "good"), ("neg", "poor")):
            rows.append({"text": " ".join([*words, word]), "label": label, "pair": i})
    pd.DataFrame(rows).to_csv(tmp_path / "t.csv", index=False)
    given = {"path": tmp_path / "t.csv", "text": "text", "target": "label"}

    def warnings(**more: str) -> str:
        task = TextTask(TextSettings.parse({**given, **more}, "task"), TextNetworkSettings())
        return "\n".join(task.warnings)

    assert "80 of 80 texts are nearly copies of others" in warnings()
    assert "nearly copies" not in warnings(groups="pair")


def test_repeated_measurements_in_a_table(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(60), 3)
    x = rng.normal(size=(60, 5))[person] + 0.002 * rng.normal(size=(180, 5))
    frame = pd.DataFrame(x, columns=list("abcde"))
    frame["s"], frame["y"], frame["who"] = rng.normal(size=180), rng.normal(size=180), person
    frame.to_csv(tmp_path / "t.csv", index=False)
    given = {"path": tmp_path / "t.csv", "target": "y", "privileged": ["s"]}

    def warnings(**more: object) -> str:
        task = TableTask(TableSettings.parse({**given, **more}, "task"), TableNetworkSettings())
        return "\n".join(task.warnings)

    assert "rows are nearly copies of others" in warnings(ignore=["who"])
    assert "nearly copies" not in warnings(groups="who")
