import json
from pathlib import Path

import pytest
import yaml

import lupi.configs
from lupi.comparison.defaults import LARGEST_TABLE, default_sizes, table_comparison
from lupi.comparison.plan import make_plan
from lupi.comparison.settings import ComparisonSettings
from lupi.errors import LupiError
from lupi.loaders.tables.settings import TableSettings
from lupi.records import read_comparison, write_comparison
from made_table import HEADER, rows, write_csv

CONFIGS = sorted((Path(lupi.configs.__file__).parent / "tables").glob("*.yaml"))


@pytest.mark.parametrize(
    ("n_train", "sizes"),
    [(198, [49, 99, 198]), (20594, [400, 800, 1600]), (60, [30, 60]), (20, [20])],
)
def test_sizes(n_train: int, sizes: list[int]) -> None:
    assert default_sizes(n_train, LARGEST_TABLE) == sizes


def test_too_few_rows() -> None:
    with pytest.raises(LupiError, match="19 rows are left for training; a comparison takes 20"):
        default_sizes(19, LARGEST_TABLE)


@pytest.mark.parametrize(
    ("target", "said", "without"),
    [
        ("late", {"items": "sent"}, {"label-smoothing", "confusion"}),
        ("hours", {"items": "sent"}, {"huber"}),
        ("hours", {"weights": "rain", "weights_in": ["metrics"]}, {"huber"}),
    ],
)
def test_where_xstar_is_the_quality_of_labels_arms_are_for_that(
    tmp_path: Path, target: str, said: dict[str, object], without: set[str]
) -> None:
    other = "late" if target == "hours" else "hours"
    path = write_csv(tmp_path / "answers.csv", rows())
    columns = {"target": target, "privileged": ["rain", "traffic"], "ignore": [other]}
    raw = table_comparison({"path": str(path), **columns, **said})
    arms = {arm.name: arm for arm in make_plan(ComparisonSettings.parse(raw, "")).arms}
    assert {"no-xstar", "het-likelihood", "het-likelihood/shuffled", *without} <= arms.keys()
    assert not any(arms[name].uses_xstar for name in without)
    assert "het-dropout" not in arms


@pytest.mark.parametrize("target", ["hours", "late"])
def test_columns_stand_for_a_comparison_with_every_control(tmp_path: Path, target: str) -> None:
    other = "late" if target == "hours" else "hours"
    path = write_csv(tmp_path / "my deliveries.csv", rows())
    columns = {"target": target, "privileged": ["rain", "traffic"], "ignore": [other]}
    raw = table_comparison({"path": str(path), **columns})
    plan = make_plan(ComparisonSettings.parse(raw, ""))
    assert plan.settings.name == "my-deliveries"
    names = {arm.name for arm in plan.arms}
    assert {"no-xstar", "gaussian-dropout", "het-dropout/shuffled", "oracle"} <= names
    assert {"distillation/shuffled", "self-distillation"} <= names
    assert [arm.name for arm in plan.arms if arm.classical] == ["gradient-boosting", "linear"]
    assert len(plan.runs) == len(plan.arms) * 2 * 10
    assert plan.metric.name == ("r2" if target == "hours" else "accuracy")
    assert plan.warnings == ()


def test_held_out_files_without_xstar_leave_no_oracle(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", rows())
    plain = [[*row[:5], *row[7:]] for row in rows(30, seed=1)]
    test = write_csv(tmp_path / "test.csv", plain, [*HEADER[:5], *HEADER[7:]])
    task = {"path": str(path), "test": str(test), "target": "hours", "privileged": ["rain"]}
    raw = table_comparison({**task, "features": ["km"]})
    assert "oracle" not in raw["arms"]
    raw["arms"]["oracle"] = {"method": "oracle"}
    with pytest.raises(LupiError, match="arm oracle: an oracle sees x\\* at test"):
        make_plan(ComparisonSettings.parse(raw, ""))


def test_what_the_table_warns_of_is_recorded(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", [[*row, row[7]] for row in rows()], [*HEADER, "after"])
    task = {"path": str(path), "target": "hours", "privileged": ["after"], "ignore": ["late"]}
    plan = make_plan(ComparisonSettings.parse(table_comparison(task), ""))
    assert "'after' alone predicts the target" in plan.warnings[0]
    write_comparison(tmp_path, plan.settings.resolved(), plan.arms, plan.metric, [], plan.warnings)
    record = read_comparison(tmp_path)
    assert record.warnings == list(plan.warnings)
    assert [arm.name for arm in record.arms if arm.classical] == ["gradient-boosting", "linear"]


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_settings_in_the_package_are_valid(path: Path) -> None:
    settings = ComparisonSettings.parse(yaml.safe_load(path.read_text()), "")
    assert isinstance(settings.task, TableSettings)
    assert settings.name == path.stem
    assert len(CONFIGS) == 7


def test_another_question_has_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write_csv(Path("deliveries.csv"), rows())
    asked = {"path": str(path), "target": "hours", "privileged": ["rain"]}
    first = table_comparison(asked)
    assert first["name"] == "deliveries"
    (tmp_path / "runs/deliveries").mkdir(parents=True)
    record = {"settings": {"task": ComparisonSettings.parse(first, "").task.resolved()}}
    (tmp_path / "runs/deliveries/comparison.json").write_text(json.dumps(record))
    assert table_comparison(asked)["name"] == "deliveries"
    assert table_comparison({**asked, "target": "late"})["name"] == "deliveries-late"
    other = table_comparison({**asked, "privileged": ["traffic"]})["name"]
    assert other == "deliveries-hours"
