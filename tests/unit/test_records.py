import json
from pathlib import Path
from typing import Any

import pytest

from lupi.errors import LupiError
from lupi.files import append_row, read_rows, rewrite_rows, write_json, write_whole
from lupi.records import Arm, Metric, PlannedRun, read_comparison, run_identity, write_comparison


def settings(seed: int, **task: Any) -> dict[str, Any]:
    task = {"name": "digits", **task}
    return {"task": task, "method": "no-xstar", "control": "real", "size": 10, "seed": seed}


AAA, BBB = run_identity(settings(0)), run_identity(settings(1))


def make(folder: Path) -> None:
    plan = [PlannedRun(AAA, "no-xstar", 10, 0), PlannedRun(BBB, "no-xstar", 10, 1)]
    write_comparison(folder, {"name": "x"}, [Arm("no-xstar", "no-xstar")], Metric("accuracy"), plan)
    write_json(folder / AAA / "settings.json", settings(0))
    write_json(folder / AAA / "result.json", {"format": 1, "metrics": {}})


def test_a_comparison_comes_back(tmp_path: Path) -> None:
    make(tmp_path)
    record = read_comparison(tmp_path)
    assert [run.plan.run_id for run in record.finished] == [AAA]
    assert record.arms == [Arm("no-xstar", "no-xstar")]
    assert record.warnings == []


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    write_json(tmp_path / "result.json", {"a": 1})

    def break_off(path: Path) -> None:
        path.write_text('{"a": 2')
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_whole(tmp_path / "result.json", break_off)
    assert json.loads((tmp_path / "result.json").read_text()) == {"a": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


def test_torn_lines_are_skipped_and_named(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    append_row(path, {"epoch": 1})
    append_row(path, {"epoch": 2})
    with path.open("a") as file:
        file.write('{"epoch": 3, "val"')
    rows, warnings = read_rows(path)
    assert rows == [{"epoch": 1}, {"epoch": 2}]
    assert warnings == [f"{path}: line 3 is incomplete and was skipped"]
    rewrite_rows(path, rows)
    assert read_rows(path) == (rows, [])


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 99}'])
def test_an_unreadable_result_counts_as_unfinished_and_is_named(
    tmp_path: Path, content: str
) -> None:
    make(tmp_path)
    (tmp_path / AAA / "result.json").write_text(content)
    record = read_comparison(tmp_path)
    assert record.finished == []
    assert len(record.warnings) == 1
    assert f"{AAA}/result.json" in record.warnings[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "can't be read as a record"),
        ('{"format": 99}', "has record format 99, this lupi reads 1"),
        ('{"format": 1}', "is not a comparison record"),
        ('{"format": 1, "settings": {"task": null}}', "settings.task: Input should be"),
        ('{"format": 1, "settings": {"questions": 1}}', "settings.questions: Input should be"),
    ],
)
def test_foreign_comparisons_are_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "comparison.json").write_text(content)
    with pytest.raises(LupiError, match=message):
        read_comparison(tmp_path)


def test_a_folder_without_comparison_says_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(LupiError, match="such as runs/demo"):
        read_comparison(tmp_path)


def test_where_images_are_cached_is_no_part_of_a_runs_identity() -> None:
    assert run_identity(settings(0, cache="here")) == run_identity(settings(0, cache="there"))
    assert run_identity(settings(0, n_fragments=3)) != AAA
