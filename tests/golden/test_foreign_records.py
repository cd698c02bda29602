"""Records that are broken or from elsewhere: named, and no verdict changes without a word."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lupi.errors import LupiError
from lupi.records import read_comparison, run_identity
from lupi.verdict.results import Summary
from lupi.verdict.summary import summarise
from made_records import make_records, run_folder

RUN = ("het-dropout", 150, 2)


def change(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def torn_result(folder: Path, _: Path) -> None:
    path = folder / "result.json"
    path.write_text(path.read_text()[:40])


def other_version(folder: Path, _: Path) -> None:
    change(folder / "result.json", format=2)


def no_score(folder: Path, _: Path) -> None:
    change(folder / "result.json", metrics={"test": {}})


def torn_settings(folder: Path, _: Path) -> None:
    (folder / "settings.json").write_text("{")


def other_run(folder: Path, demo: Path) -> None:
    shutil.rmtree(folder)
    shutil.copytree(run_folder(demo, "oracle", 300, 0), folder)


def other_seed(folder: Path, demo: Path) -> None:
    shutil.rmtree(folder)
    shutil.copytree(run_folder(demo, "het-dropout", 150, 3), folder)


def other_data(folder: Path, _: Path) -> None:
    change(folder / "settings.json", task={"name": "tiny-imagenet"})


def no_result(folder: Path, _: Path) -> None:
    (folder / "result.json").unlink()


def no_folder(folder: Path, _: Path) -> None:
    shutil.rmtree(folder)


def judged(folder: Path) -> Summary:
    return summarise(read_comparison(folder))


@pytest.mark.parametrize(
    ("corrupt", "said"),
    [
        (torn_result, "{run}/result.json can't be read as a record"),
        (other_version, "{run}/result.json has record format 2, this lupi reads 1"),
        (no_score, "{run}: result.json has no finite test accuracy"),
        (torn_settings, "{run}/settings.json can't be read"),
        (other_run, "{run}/settings.json is of another run: its size is 300, planned was 150"),
        (other_seed, "{run}/settings.json is of another run: its seed is 3, planned was 2"),
        (other_data, "{run}/settings.json was changed or is of another run"),
        (no_result, "missing results (144 runs planned): het-dropout 1 at n = 150"),
        (no_folder, "missing results (144 runs planned): het-dropout 1 at n = 150"),
    ],
)
def test_a_result_that_cannot_be_trusted_is_named_and_left_out(
    tmp_path: Path, corrupt: Callable[[Path, Path], None], said: str
) -> None:
    folder = run_folder(demo := make_records(tmp_path / "demo"), *RUN)
    corrupt(folder, demo)
    summary = judged(demo)
    assert any(said.format(run=folder) in warning for warning in summary.warnings)
    (cell,) = [c for a in summary.arms if a.name == RUN[0] for c in a.cells if c.size == RUN[1]]
    assert (cell.n_seeds, cell.n_missing) == (7, 1)
    assert summary.n_finished == 143


def test_a_torn_row_of_metrics_changes_nothing_but_is_not_the_verdicts_business(
    tmp_path: Path,
) -> None:
    demo = make_records(tmp_path / "demo")
    before = judged(demo)
    with (run_folder(demo, *RUN) / "metrics.jsonl").open("a") as file:
        file.write('{"epoch": 7, "va')
    assert judged(demo) == before  # the page, which shows the rows, names the torn one


def test_results_without_settings_count_with_a_word(tmp_path: Path) -> None:
    demo = make_records(tmp_path / "demo")
    before = judged(demo)
    (run_folder(demo, *RUN) / "settings.json").unlink()
    after = judged(demo)
    assert after.arms == before.arms
    assert any("settings.json is missing; the first is" in text for text in after.warnings)


def test_two_data_sets_in_one_comparison_are_refused_by_name(tmp_path: Path) -> None:
    """A plan put together by hand, from runs whose own records are all right."""
    demo = make_records(tmp_path / "demo")
    folder = run_folder(demo, *RUN)
    settings = json.loads((folder / "settings.json").read_text())
    settings["task"] = settings["task"] | {"name": "tiny-imagenet"}
    identity = run_identity(settings)
    (folder / "settings.json").write_text(json.dumps(settings))
    folder.rename(demo / identity)
    plan = (demo / "comparison.json").read_text().replace(folder.name, identity)
    (demo / "comparison.json").write_text(plan)
    message = f"name 'digits' in .* and name 'tiny-imagenet' in {identity}"
    with pytest.raises(LupiError, match=message):
        read_comparison(demo)


@pytest.mark.parametrize("name", ["../elsewhere", "/etc", "a/b", "..", ""])
def test_a_run_outside_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    demo = make_records(tmp_path / "demo", sizes=(75,), n_seeds=1, images=False)
    document = json.loads((demo / "comparison.json").read_text())
    document["runs"][0]["run_id"] = name
    (demo / "comparison.json").write_text(json.dumps(document))
    with pytest.raises(LupiError, match=r"is not a comparison record: runs.0.run_id"):
        read_comparison(demo)
