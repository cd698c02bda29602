import os
import subprocess
import sys
from pathlib import Path

import pytest

from lupi.errors import LupiError
from lupi.train.parallel.precision import check_bfloat16
from lupi.train.parallel.processes import OneProcess

WITHOUT_AMX = {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"}
TRIAL = [sys.executable, "-m", "lupi.train.parallel.precision"]


@pytest.fixture(autouse=True)
def _nothing_tried_yet() -> None:
    check_bfloat16.cache_clear()


def test_a_crash_of_the_trial_is_an_error_with_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashing = tmp_path / "python"
    crashing.write_text("#!/bin/sh\nkill -ILL $$\n")
    crashing.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(crashing))
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(LupiError, match="ended with SIGILL; use 32-true"):
        OneProcess("bf16-mixed")
    OneProcess("32-true")


def test_bfloat16_trains_where_the_machine_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {**os.environ, **WITHOUT_AMX}
    if subprocess.run(TRIAL, env=environment, capture_output=True, check=False).returncode:
        pytest.skip("this machine can't compute in bfloat16")
    program = (
        "from pathlib import Path\n"
        "from lupi.train.run import run\n"
        "from lupi.train.settings import RunSettings\n"
        "settings = {'task': {'name': 'digits'}, 'network': {'width': 4}, 'method': 'het-dropout',"
        " 'settings': {'sites': ['head.*']},"
        " 'size': 40, 'seed': 0}\n"
        "for precision in ('32-true', 'bf16-mixed'):\n"
        "    train = {'epochs': 2, 'precision': precision}\n"
        "    run_settings = RunSettings.parse({**settings, 'train': train}, '')\n"
        "    print(run(run_settings, Path(precision))['metrics']['val']['loss'])"
    )
    command = [sys.executable, "-c", program]
    printed = subprocess.check_output(command, env=environment, cwd=tmp_path, text=True)
    exact, short = map(float, printed.split())
    assert exact != short
    assert exact == pytest.approx(short, rel=0.02)
