"""Someone's own table, through the real command."""

import json
from pathlib import Path

import pytest
import yaml

from conftest import Here
from made_table import HEADER, rows, write_csv

COLUMNS = ("--target", "hours", "--privileged", "rain,traffic", "--ignore", "late")
FEW = "arms={no-xstar: {method: no-xstar}, het: {method: het-dropout}, linear: {method: linear}}"
SHORT = ("--set", "seeds=1", "--set", "sizes=[30]", "--set", "train.epochs=1", "--set", FEW)


@pytest.fixture
def table(tmp_path: Path) -> str:
    return write_csv(tmp_path / "deliveries.csv", rows()).name


def test_from_columns_to_verdict(tmp_path: Path, here: Here) -> None:
    made = [[*row[:5], row[7], *row[6:]] for row in rows()]  # x* gives the target away
    write_csv(tmp_path / "deliveries.csv", made)
    arguments = ("compare", "deliveries.csv", *COLUMNS, *SHORT, "--workers", "1", "--json")
    _, printed, said = here(*arguments)
    assert "warning: privileged column 'rain' alone predicts the target" in said
    assert "each seed draws its own training, validation and test rows from" in said
    assert max(map(len, said.partition("warning:")[0].splitlines())) <= 80
    facts = json.loads((tmp_path / "runs/deliveries/comparison.json").read_text())["facts"]
    assert [fact["about"] for fact in facts[:3]] == ["x", "x*", "y"]
    summary = json.loads(printed)
    assert (summary["comparison"], summary["metric"], summary["n_finished"]) == (
        "deliveries",
        "r2",
        3,
    )
    assert [arm["classical"] for arm in summary["arms"]] == [False, False, True]
    assert "'rain' alone predicts the target" in summary["warnings"][0]
    page = (tmp_path / "runs/deliveries/report.html").read_text()
    assert "alone predicts the target" in page
    text = here("report", "runs/deliveries")[1]
    assert "classical models, for reference only: linear" in text
    assert "0 of 3 runs to do" in here(*arguments)[2]
    write_csv(tmp_path / "deliveries.csv", made[1:])
    assert "3 of 3 runs to do" in here(*arguments)[2]  # the table is another


def test_printed_settings_stand_for_the_same_comparison(table: str, here: Here) -> None:
    changes = ("--set", "task.categorical=[packed]", "--set", "seeds=3")
    code, printed, _ = here("compare", table, *COLUMNS, *changes, "--print-settings")
    assert code == 0
    raw = yaml.safe_load(printed)
    assert raw["task"]["privileged"] == ["rain", "traffic"]
    assert raw["task"]["categorical"] == ["packed"]
    assert (raw["sizes"], raw["seeds"]) == ([30, 60], 3)
    Path("deliveries.yaml").write_text(printed)
    assert here("compare", "deliveries.yaml", "--print-settings")[1] == printed
    repeated = ("--target", "hours", "--privileged", "rain", "--privileged", "traffic")
    arguments = ("compare", table, *repeated, "--ignore", "late", *changes, "--print-settings")
    assert here(*arguments)[1] == printed


def test_rows_in_order_of_time(table: str, here: Here) -> None:
    code, printed, _ = here("compare", table, *COLUMNS, "--time", "sent", "--print-settings")
    assert code == 0
    raw = yaml.safe_load(printed)
    assert raw["task"]["time"] == "sent"
    assert raw["sizes"][-1] <= 60


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("groups", "groups: none of the 3 groups fits into 20% of 120 rows for val"),
        ("split", "split: column 'van' has 'old'; expected train, val or test in every row"),
    ],
)
def test_columns_that_can_not_divide_rows(
    table: str, here: Here, option: str, message: str
) -> None:
    code, _, said = here("compare", table, *COLUMNS, f"--{option}", "van")
    assert code == 2
    assert message in " ".join(said.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.csv", *COLUMNS], "none.csv does not exist"),
        (["deliveries.csv"], "give --target y --privileged a,b"),
        (["deliveries.csv", "--target", "hours"], "needs `target` and `privileged`"),
        (["deliveries.csv", "--target", "hour", "--privileged", "rain"], "did you mean `hours`"),
        (["deliveries.csv", "--target", "hours", "--privileged", "rein"], "did you mean `rain`"),
        (
            ["mine.yaml", "--target", "hours"],
            "for settings, where it is task.target",
        ),
        (["deliveries.csv", *COLUMNS, "--set", "sizes=[61]"], "there are 60"),
        (["deliveries.csv", *COLUMNS, "--set", "task.metrik=r2"], "did you mean `metric`"),
    ],
)
def test_mistakes_end_in_a_message(
    table: str,
    here: Here,
    arguments: list[str],
    message: str,
) -> None:
    code, stdout, stderr = here("compare", *arguments)
    assert code == 2
    assert message in stderr.replace("\n", " ")
    assert stdout == ""


def test_classical_models_are_listed(here: Here) -> None:
    listed = {m["name"] for m in json.loads(here("methods", "--json")[1])["methods"]}
    assert {"gradient-boosting", "linear"} <= listed
    assert "penalty" in here("methods", "linear")[1]


def test_the_header_is_that_of_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs/tables.md").read_text()
    assert ",".join(HEADER) in page
