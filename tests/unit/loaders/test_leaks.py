from pathlib import Path

import numpy as np
import pytest

from lupi.loaders.tables.columns import load_table
from lupi.loaders.tables.leaks import find_leaks
from made_table import HEADER, rows, settings_of, write_csv


def leaks(
    tmp_path: Path,
    made: list[list[str]],
    target: str = "hours",
    header: list[str] = HEADER,
    **changes: object,
) -> list[str]:
    path = write_csv(tmp_path / "a.csv", made, header)
    return list(find_leaks(load_table(settings_of(path, target, **changes))))


@pytest.mark.parametrize("target", ["hours", "late"])
def test_an_honest_table_has_none(tmp_path: Path, target: str) -> None:
    assert leaks(tmp_path, rows(), target) == []


@pytest.mark.parametrize("target", ["hours", "late"])
def test_a_privileged_column_that_is_the_target_in_other_words(tmp_path: Path, target: str) -> None:
    place = HEADER.index(target)
    words = {"late": "no", "in time": "yes"}
    made = [[*row, words.get(row[place]) or str(10 - 2 * float(row[place]))] for row in rows()]
    (found,) = leaks(tmp_path, made, target, [*HEADER, "after"], privileged=["rain", "after"])
    assert found.startswith("privileged column 'after' alone predicts the target")


def test_a_privileged_column_that_is_a_feature(tmp_path: Path) -> None:
    (found,) = leaks(tmp_path, rows(), features=["km", "rain"])
    assert (
        found == "column 'rain' is both privileged and a feature: the student sees it at test time"
    )


@pytest.mark.parametrize(
    ("copied", "change"),
    [("km", lambda text: str(100 - 3 * float(text))), ("van", lambda text: f"{text}!")],
)
def test_a_privileged_column_that_copies_a_feature(
    tmp_path: Path, copied: str, change: "object"
) -> None:
    assert callable(change)
    made = [[*row, change(row[HEADER.index(copied)])] for row in rows()]
    (found,) = leaks(tmp_path, made, header=[*HEADER, "copy"], privileged=["rain", "copy"])
    assert found.startswith(f"privileged column 'copy' is equivalent to feature '{copied}'")


@pytest.mark.parametrize("target", ["hours", "late"])
def test_a_feature_that_is_the_target_in_other_words(tmp_path: Path, target: str) -> None:
    place = HEADER.index(target)
    words = {"late": "no", "in time": "yes"}
    made = [[*row, words.get(row[place]) or str(10 - 2 * float(row[place]))] for row in rows()]
    (found,) = leaks(tmp_path, made, target, [*HEADER, "after"])
    assert found.startswith("feature 'after' alone predicts the target (cross-validated")
    assert "ignore" in found


def test_rows_in_train_and_test(tmp_path: Path) -> None:
    write_csv(tmp_path / "test.csv", [*rows(20, seed=1), *rows(120)[:80]])
    (_, found) = leaks(tmp_path, rows(), test=tmp_path / "test.csv", val=tmp_path / "test.csv")
    assert found.startswith("80 of 100 test rows are also training rows")


def test_rows_that_stand_there_twice(tmp_path: Path) -> None:
    (found,) = leaks(tmp_path, [*rows(), *rows()[:30]])
    assert found.startswith("30 of 150 rows are exact copies of other rows")


def test_people_of_few_features_are_no_copies(tmp_path: Path) -> None:
    """Equal rows are what chance makes of a few categories."""
    rng = np.random.default_rng(0)
    header = ["sex", "smoker", "cough", "ill"]
    made = [[str(value) for value in rng.integers(0, 2, 4)] for _ in range(200)]
    columns = {"privileged": ["cough"], "ignore": []}
    assert leaks(tmp_path, made, "ill", header, **columns) == []


def test_people_whose_features_go_together_are_no_copies(tmp_path: Path) -> None:
    """… although rows of shuffled columns are hardly ever equal."""
    rng = np.random.default_rng(0)
    header = [*(f"answer{i}" for i in range(8)), "cough", "ill"]
    kind = rng.integers(0, 40, 3000)  # people of one kind give nearly the same answers
    usual = rng.integers(0, 6, (40, 10))
    other = rng.integers(0, 6, (3000, 10))
    made = np.where(rng.random((3000, 10)) < 0.8, usual[kind], other)
    columns = {"privileged": ["cough"], "ignore": []}
    written = [[str(value) for value in row] for row in made]
    assert leaks(tmp_path, written, "ill", header, kind="classification", **columns) == []


def test_a_feature_that_numbers_the_rows(tmp_path: Path) -> None:
    made = [[*row, str(i), str(i % 7)] for i, row in enumerate(rows())]
    (found,) = leaks(tmp_path, made, header=[*HEADER, "id", "day"])
    assert found.startswith("feature 'id' looks like a row number")


def test_partial_xstar_is_looked_at_where_it_is(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    made = [[*row, "" if rng.random() < 0.5 else row[7]] for row in rows()]
    (found,) = leaks(
        tmp_path, made, header=[*HEADER, "after"], privileged=["after"], ignore=HEADER[-1:]
    )
    assert "'after' alone predicts the target" in found


def test_gaps_that_tell_the_target(tmp_path: Path) -> None:
    """A column that is filled in after the target is known."""
    rng = np.random.default_rng(0)
    made = [[*row, "" if (row[-1] == "late") == (rng.random() < 0.97) else "F"] for row in rows()]
    (found,) = leaks(tmp_path, made, "late", [*HEADER, "charge"], privileged=["rain"])
    assert found.startswith("whether column 'charge' is filled predicts the target (balanced acc")
    (found,) = leaks(tmp_path, made, "late", [*HEADER, "charge"], privileged=["charge"])
    assert found.startswith("whether column 'charge' is filled")


def test_gaps_by_chance_are_no_leak(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    made = [[*row, "" if rng.random() < 0.5 else "F"] for row in rows()]
    for target in ("late", "hours"):
        assert leaks(tmp_path, made, target, [*HEADER, "charge"], privileged=["rain"]) == []


def test_an_x_that_is_too_good(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    made = []
    for _ in range(400):
        a, b = rng.integers(2, size=2)
        made.append([f"{a}", f"{b}", f"{rng.normal():.3f}", "yes" if a != b else "no"])
    header = ["a", "b", "s", "y"]
    (found,) = leaks(tmp_path, made, "y", header, privileged=["s"], ignore=[])
    assert found.startswith("x alone predicts the target almost without error (cross-validated")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda km, van: f"{round(float(km), -1)}", "nearly a copy of feature 'km'"),
        (lambda km, van: f"{float(km) * 1.6 + 3:.1f}", "feature 'km'"),
        (lambda km, van: "1" if van == "old" else "0", "feature 'van'"),
    ],
)
def test_xstar_that_a_feature_nearly_tells(tmp_path: Path, make: "object", words: str) -> None:
    assert callable(make)
    made = [[*row, make(row[0], row[1])] for row in rows(300)]
    (found,) = leaks(tmp_path, made, header=[*HEADER, "copy"], privileged=["copy"])
    assert words in found


def test_xstar_that_features_tell_together(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    made = []
    for _ in range(300):
        colour = rng.integers(5)
        flags = [str(int(colour == k)) for k in range(5)]
        made.append([*flags, "rgbyk"[colour], f"{rng.normal():.3f}"])
    header = [*"abcde", "colour", "y"]
    (found,) = leaks(tmp_path, made, "y", header, privileged=["colour"], ignore=[])
    assert found.startswith("privileged column 'colour' follows from the features together")
