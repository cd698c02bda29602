"""What users of Python see: errors in their words, figures, advice, their own networks."""

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import nn

import lupi
from conftest import Here
from lupi.comparison.settings import ComparisonSettings
from lupi.errors import LupiError
from lupi.interface.compare import in_python
from made_table import rows, write_csv


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> lupi.Comparison:
    folder = tmp_path_factory.mktemp("table")
    path = write_csv(folder / "deliveries.csv", rows())
    return lupi.compare(
        path,
        target="late",
        privileged=["rain", "traffic"],
        ignore=["hours"],
        arms=["het-dropout"],
        sizes=[30, 40],
        seeds=2,
        changes={"train.epochs": 1, "train.steps_per_epoch": 2},
        folder=folder / "runs/one",
        processes=1,
        quiet=True,
    )


def test_the_document_has_facts_outlook_and_advice(compared: lupi.Comparison, here: Here) -> None:
    found = compared.to_dict()
    assert found["verdict"] == compared.verdict
    assert {fact["about"] for fact in found["facts"]} >= {"x", "y", "rows", "outlook"}
    assert found["outlook"]
    assert any("lupi" in line for line in found["advice"])
    code, printed, _ = here("report", str(compared.folder), "--json")
    assert code == 0
    assert json.loads(printed)["advice"] == found["advice"]


def test_a_folder_of_comparisons_is_listed(compared: lupi.Comparison, here: Here) -> None:
    code, printed, _ = here("report", str(compared.folder.parent))
    assert code == 0
    assert f"{compared.folder}  {compared.verdict} (12 of 12 runs)" in printed
    _, printed, _ = here("report", str(compared.folder.parent), "--json")
    assert json.loads(printed)["comparisons"][0]["verdict"] == compared.verdict


def test_figures_are_returned(compared: lupi.Comparison) -> None:
    assert len(compared.plot().data) > 0
    assert len(compared.plot("differences").data) > 0


def test_warnings_before_training_are_kept(compared: lupi.Comparison) -> None:
    assert set(compared.record.warnings) <= set(compared.warnings)


def test_errors_speak_python(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "deliveries.csv", rows())
    with pytest.raises(LupiError, match="did you mean `seeds`"):
        lupi.compare(path, target="late", privileged=["rain"], seed=3)
    with pytest.raises(LupiError) as raised:
        lupi.compare(path, target="late")
    assert "--" not in str(raised.value)
    assert in_python("--max-seeds: too few; see --arm") == "max_seeds: too few; see arm"


def test_an_error_about_several_keys_names_them() -> None:
    raw = {
        "name": "x",
        "task": {"name": "digits"},
        "arms": {"no-xstar": {"method": "no-xstar"}},
        "sizes": [100],
        "seeds": 1,
        "train_by_size": {400: {}},
    }
    with pytest.raises(LupiError) as raised:
        ComparisonSettings.parse(raw, "")
    assert str(raised.value) == "train_by_size: 400 is not in `sizes`, [100]"


def test_a_network_of_ones_own(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(90, 3)).astype(np.float32)
    y = (x[:, 0] > 0).astype(int)
    data = [(x[i], x[i, :1], y[i]) for i in range(90)]
    parts = (data[:60], [(a, c) for a, _, c in data[60:75]], [(a, c) for a, _, c in data[75:]])

    def build() -> nn.Module:
        return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 2))

    few: dict[str, Any] = {"sizes": [20], "seeds": 2, "changes": {"train.epochs": 1}, "quiet": True}
    found = lupi.compare(parts, network=build, folder=tmp_path / "runs", **few)
    assert found.is_complete
    with pytest.raises(LupiError, match="three datasets"):
        lupi.compare(data, network=build, **few)


def build_pair(n_features: int, n_outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(n_features, 5), nn.Dropout(0.1), nn.Linear(5, n_outputs))


def fitted(seed: int, network: Any = None) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    estimator = lupi.LupiClassifier(epochs=2, random_state=seed, network=network)
    return np.asarray(estimator.fit(x, x[:, 0] > 0, xstar=x[:, :1]).predict_proba(x))


def test_an_estimator_takes_any_network() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    estimator = lupi.LupiClassifier(epochs=1, random_state=0, network=build_pair)
    estimator.fit(x, x[:, 0] > 0, xstar=x[:, :1])
    student: Any = estimator.student_
    assert student[0].out_features == 5
    wrong: Any = lambda n_features, n_outputs: 3  # noqa: E731
    with pytest.raises(LupiError, match=r"expected a function that builds an nn\.Module"):
        lupi.LupiClassifier(epochs=1, network=wrong).fit(x, x[:, 0] > 0)


def test_fits_in_threads_equal_a_fit_alone() -> None:
    alone = fitted(1)
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(fitted(1))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3
    assert all((one == alone).all() for one in found)
