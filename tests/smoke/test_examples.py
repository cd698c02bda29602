"""The example scripts: short, and they run to a student that anybody can load."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from safetensors.torch import load_file
from torch import nn

from conftest import Here

EXAMPLES = Path(__file__).parents[2] / "examples"
NEEDS = {"lightning_module": "pytorch_lightning", "accelerate_loop": "accelerate"}


@pytest.mark.parametrize(
    "name", ["plain", *(pytest.param(name, marks=pytest.mark.extra) for name in NEEDS)]
)
def test_runs_to_a_plain_student(name: str, tmp_path: Path) -> None:
    if name in NEEDS and importlib.util.find_spec(NEEDS[name]) is None:
        pytest.skip(f"{NEEDS[name]} is not installed: pip install 'lupi[examples]'")
    student = tmp_path / "student.safetensors"
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), "--out", str(student)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    accuracy = re.search(r"accuracy (\d\.\d+), student in", done.stdout)
    assert accuracy is not None, done.stdout
    assert float(accuracy[1]) > 0.58  # a guess has 0.5
    net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 2))
    net.load_state_dict(load_file(student))


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_is_short(script: Path) -> None:
    assert len(script.read_text().splitlines()) < 60


def test_tables_are_made_and_judged_by_another_score(tmp_path: Path, here: Here) -> None:
    answers = _module("prepare_crowd_digits").prepare()
    assert answers.groupby("item").size().eq(3).all()
    right = answers["answer"] == answers["digit"]
    assert 0.5 < right.mean() < 0.6
    of_each = right.groupby(answers["annotator"]).mean()
    assert of_each.min() < 0.2 < 0.9 < of_each.max()

    seasons = pd.DataFrame(
        {
            "player_name": "A",
            "player_id": np.repeat([f"p{i}" for i in range(40)], 3),
            "season": np.tile([1990, 1991, 1993], 40),
            "mp": np.arange(120) * 10,
            "raptor_total": np.sin(np.arange(120)),
        }
    )
    pairs = _module("prepare_nba").prepare(seasons)
    assert (pairs["season"] == 1990).all()  # 1993 does not follow 1991
    assert pairs["next_minutes"].tolist() == seasons["mp"][1::3].tolist()

    seasons.assign(y=np.cos(np.arange(120))).to_csv(tmp_path / "seasons.csv", index=False)
    arms = (
        "arms={no-xstar: {method: no-xstar}, het: {method: het-likelihood, controls: [shuffled]}}"
    )
    sets = ("seeds=2", "sizes=[30]", "train.epochs=1", "train.steps_per_epoch=2", arms)
    here(
        *("compare", "seasons.csv", "--target", "y", "--privileged", "mp", "--weights", "mp"),
        *("--ignore", "player_name,player_id", "--set", "task.weights_in=[metrics]"),
        *(word for change in sets for word in ("--set", change)),
        *("--workers", "1"),
    )
    done = subprocess.run(
        [sys.executable, EXAMPLES / "tables/judge_other_score.py", "runs/seasons", "mse"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"het +30 +2 .* underpowered", done.stdout)


def _module(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"tables/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
