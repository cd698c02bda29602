"""The wheel, installed into an environment of its own: it trains, exports and predicts there."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from PIL import Image

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SHORT = ("sizes=[20]", "seeds=2", "train.epochs=1", "train.steps_per_epoch=2")
PREDICT = """
import json
import lupi
student = lupi.load_student("student")
print(json.dumps({"file": lupi.__file__, "rows": student.predict(["digit.png"])}))
"""


def run(*command: str | Path, cwd: Path) -> str:
    outside = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        command, cwd=cwd, env=outside, capture_output=True, text=True, check=False, timeout=1800
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_wheel_works_outside_the_repository(tmp_path: Path) -> None:
    pip = ("-m", "pip", "--quiet", "--disable-pip-version-check")
    run(sys.executable, *pip, "wheel", "--no-deps", "-w", tmp_path, ROOT, cwd=tmp_path)
    (wheel,) = tmp_path.glob("lupi-*.whl")
    inside = zipfile.ZipFile(wheel).namelist()
    assert {"lupi/py.typed", "lupi/configs/demo.yaml"} <= set(inside)
    assert all(name.startswith(("lupi/", "lupi-")) for name in inside)

    run(sys.executable, "-m", "venv", "env", cwd=tmp_path)
    there = tmp_path / "env/bin"
    constraints = ROOT / "constraints.txt"
    run(there / "python", *pip, "install", "-c", constraints, wheel, cwd=tmp_path)
    work = tmp_path / "work"
    work.mkdir()
    changes = [word for change in SHORT for word in ("--set", change)]
    answer = json.loads(run(there / "lupi", "demo", "--json", *changes, cwd=work))
    assert answer["n_finished"] == answer["n_planned"] == 18
    assert (work / "runs/demo/report.html").exists()
    run(there / "lupi", "export", "runs/demo", "--arm", "het-dropout", "--out", "student", cwd=work)
    Image.new("L", (40, 40)).save(work / "digit.png")
    said = json.loads(run(there / "python", "-c", PREDICT, cwd=work))
    assert Path(said["file"]).is_relative_to(tmp_path / "env")
    assert said["rows"][0]["prediction"] in {str(digit) for digit in range(10)}
