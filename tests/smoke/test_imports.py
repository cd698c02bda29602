"""What a command imports, which is most of the time that short commands take."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("arguments", ["--help", "methods", "demo --print-settings"])
def test_what_is_read_at_once_imports_nothing_heavy(tmp_path: Path, arguments: str) -> None:
    code = (
        "import sys\n"
        "from lupi.cli import main\n"
        f"sys.argv = ['lupi', *{arguments.split()}]\n"
        "try: main()\n"
        "finally: sys.exit(' '.join({'torch', 'numpy', 'pandas', 'sklearn'} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, check=False, capture_output=True, text=True
    )
    assert done.stdout
    assert not done.stderr.strip()


HEAVY = {"scipy", "sklearn", "pandas", "plotly", "matplotlib", "lightning_fabric", "torch._dynamo"}


@pytest.mark.parametrize("module", ["lupi.train.run", "lupi.ship.student"])
def test_a_run_and_a_student_wait_for_torch_alone(tmp_path: Path, module: str) -> None:
    code = f"import sys, {module}; print(*{HEAVY} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert not done.stdout.split()


def test_training_waits_for_torch_alone(tmp_path: Path) -> None:
    command = "train demo --set train.epochs=1 --set train.steps_per_epoch=2 --quiet"
    code = (
        "import sys\n"
        "from lupi.cli import main\n"
        f"sys.argv = ['lupi', *{command.split()}]\n"
        "try: main()\n"
        f"finally: sys.exit(' '.join({HEAVY} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, check=False, capture_output=True, text=True
    )
    assert [*tmp_path.rglob("result.json")]
    assert not done.stderr.strip()
