"""`lupi.compare`: data to a verdict, in Python."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import lupi
from conftest import TwoClasses, VectorTask
from lupi.errors import LupiError
from lupi.interface.named_arms import chosen_arms
from lupi.interface.sources import settings_from

FEW: dict[str, Any] = {
    "arms": ["het-dropout"],
    "sizes": [40],
    "seeds": 2,
    "changes": {"train.epochs": 1, "train.steps_per_epoch": 2},
}


def frame(n: int = 160) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    made = pd.DataFrame(
        {
            "a": rng.normal(size=n),
            "code": rng.choice(["01", "02"], n),
            "price, net": rng.normal(size=n),
        }
    )
    made["y"] = np.where(made["a"] + made["price, net"] > 0, "yes", "no")
    return made


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> lupi.Comparison:
    folder = tmp_path_factory.mktemp("frame") / "records"
    return lupi.compare(
        frame(), target="y", privileged="price, net", folder=folder, processes=1, quiet=True, **FEW
    )


def test_a_frame_to_a_verdict(done: lupi.Comparison) -> None:
    assert done.is_complete
    assert done.verdict == "Underpowered: too few seeds"
    assert done.verdicts == {("het-dropout", 40): "underpowered"}
    assert "6 of 6 runs" in repr(done)
    assert max(map(len, str(done).splitlines())) <= 80
    assert "het-dropout/shuffled" in str(done)
    assert done.to_dict()["n_finished"] == 6
    assert done.summary.to_frame()["arm"].nunique() == 3


def test_a_row_per_run(done: lupi.Comparison) -> None:
    rows = done.to_frame()
    assert len(rows) == 6
    assert set(rows["arm"]) == {"no-xstar", "het-dropout", "het-dropout/shuffled"}
    assert rows["score"].equals(rows["test_accuracy"].rename("score"))
    assert (rows["status"] == "finished").all()


def test_a_student_predicts_from_x_alone(done: lupi.Comparison) -> None:
    new = frame()[["a", "code"]].head(3)
    for arm in (None, "het-dropout/shuffled"):
        predictions = done.student(arm).predict(new)
        assert {row["prediction"] for row in predictions} <= {"yes", "no"}
    with pytest.raises(LupiError, match="no arm is called `het`"):
        done.student("het")


def test_a_notebook_shows_it(done: lupi.Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    text = str(done)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)  # where rich shows at once
    assert str(done) == text
    html = done._repr_html_()
    assert "<table>" in html
    assert "Underpowered" in html


def test_the_page_goes_where_it_is_wanted(done: lupi.Comparison, tmp_path: Path) -> None:
    assert (done.folder / "report.html").exists()
    page = done.report(tmp_path / "page.html")
    assert "het-dropout" in page.read_text()


def test_a_frame_keeps_its_types(done: lupi.Comparison) -> None:
    (path,) = (done.folder / "data").glob("*.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(path), frame())
    assert "1 category (code)" in done.record.facts[0].text  # "01" is no number


def test_the_same_call_runs_nothing_again(
    done: lupi.Comparison, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.stat().st_mtime_ns for path in done.folder.glob("*/result.json")}
    again = lupi.compare(
        frame(), target="y", privileged=["price, net"], folder=done.folder, processes=1, **FEW
    )
    assert "0 of 6 runs to do" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in done.folder.glob("*/result.json")} == before
    assert again.to_dict() == done.to_dict()


def test_what_is_on_disk_can_be_read_back(done: lupi.Comparison) -> None:
    assert lupi.Comparison(done.folder).to_dict() == done.to_dict()
    with pytest.raises(LupiError, match="holds no comparison"):
        lupi.Comparison(done.folder / "data")


def test_a_task_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    done = lupi.compare(VectorTask(), folder=tmp_path / "own", **FEW)
    assert torch.equal(torch.rand(3), expected)  # the caller's draws are the caller's
    assert done.is_complete
    assert done.record.settings["task"]["name"] == "custom"
    student = done.student("het-dropout")
    assert isinstance(student, nn.Module)
    assert student(torch.zeros(5, 6)).shape == (5, 2)
    with pytest.raises(LupiError, match="a task defined in Python"):
        lupi.load_student(next(done.folder.glob("*/result.json")).parent)
    capsys.readouterr()
    assert lupi.compare(VectorTask(), folder=tmp_path / "own", **FEW).to_dict() == done.to_dict()
    assert "0 of 6 runs to do" in capsys.readouterr().err
    with pytest.raises(LupiError, match="run in this process"):
        lupi.compare(VectorTask(), processes=2, **FEW)


def test_a_changed_task_is_run_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Wider(VectorTask):
        def network(self) -> nn.Module:
            return nn.Sequential(nn.Linear(6, 17), nn.ReLU(), nn.Dropout(0.2), nn.Linear(17, 2))

    plain = {**FEW, "arms": ["no-xstar"]}
    lupi.compare(VectorTask(), folder=tmp_path, quiet=True, **plain)
    lupi.compare(Wider(), folder=tmp_path, **plain)
    assert "2 of 2 runs to do" in capsys.readouterr().err


def test_failed_runs_are_told(tmp_path: Path) -> None:
    class Failing(TwoClasses):
        __slots__ = ()

        def trivial(self, train: Any, test: Any) -> dict[str, float]:
            raise ValueError("no luck")

    done = lupi.compare(
        VectorTask(Failing(("0", "1"))),
        folder=tmp_path,
        quiet=True,
        **{**FEW, "arms": ["no-xstar"]},
    )
    assert not done.is_complete
    assert done.failures["no-xstar, n = 40, seed 0"] == "ValueError: no luck"
    assert done.to_frame()["status"].tolist() == ["failed", "failed"]
    assert done.to_frame()["score"].isna().all()


def test_settings_as_a_mapping_say_what_is_wrong() -> None:
    with pytest.raises(LupiError, match="task"):
        lupi.compare({"name": "mine"})
    with pytest.raises(LupiError, match="target: it is for tables and texts"):
        lupi.compare({"name": "mine"}, target="y")
    with pytest.raises(LupiError, match="expected a pandas DataFrame, a path"):
        lupi.compare([1, 2])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"target": "y"}, "the data frame is taken for a table, which needs `target`"),
        ({"target": "z", "privileged": "a"}, "no column is called `z`"),
        ({"target": "y", "privileged": "a", "rationale": "a"}, "rationale: it is for texts"),
        ({"target": "y", "privileged": "a", "kinds": "x"}, "task.kinds: no such key"),
        ({"target": "y", "privileged": "a", "until_decided": 1}, "2 seeds or more"),
        ({"target": "y", "privileged": "a", "arms": ["het"]}, "no arm or method is called `het`"),
    ],
)
def test_mistakes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LupiError, match=message):
        lupi.compare(frame(), **changes)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "more than one column named 'a'"),
        (pd.DataFrame({"a": [1, "x"]}), "column 'a' of the data frame mixes int, str"),
    ],
)
def test_frames_that_no_file_can_hold(made: pd.DataFrame, message: str) -> None:
    with pytest.raises(LupiError, match=message):
        lupi.compare(made, target="a", privileged="b")


def test_arms_by_name() -> None:
    known = {"plain": {"method": "no-xstar"}, "het": {"method": "het-dropout", "controls": []}}
    assert chosen_arms(["het"], known) == known
    assert chosen_arms(["tram"], known) == {
        "plain": known["plain"],
        "tram": {"method": "tram", "controls": ["shuffled"]},
    }
    assert chosen_arms({"a": "no-xstar"}, known) == {"a": {"method": "no-xstar"}}
    assert "controls" not in chosen_arms(["linear"], {})["linear"]
    changes = {"arms.tram.settings.weight": 2}
    raw = settings_from({"name": "mine", "arms": known}, {}, changes, arms=["tram"])
    assert raw["arms"]["tram"] == {
        "method": "tram",
        "controls": ["shuffled"],
        "settings": {"weight": 2},
    }


def test_importing_lupi_is_light() -> None:
    code = (
        "import sys, lupi\n"
        "assert {'compare', 'judge', 'load_student', 'list_methods'} <= set(dir(lupi))\n"
        "heavy = {'torch', 'pandas', 'sklearn', 'numpy', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_methods_are_listed_with_their_documentation() -> None:
    found = lupi.list_methods()
    assert "het-dropout" in repr(found)
    info = found["het-dropout"]
    assert info.uses_xstar
    assert "beta" in info.settings
    assert "h*" in info.doc
    assert "prior = " in str(info)
    assert "<table>" in found._repr_html_()
    with pytest.raises(LupiError, match="did you mean `tram`"):
        lupi.list_methods("tra")
