"""The example scripts: short, and they run to a student that anybody can load."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file
from torch import nn

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
