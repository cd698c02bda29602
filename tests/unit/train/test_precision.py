import os
import subprocess
import sys
from pathlib import Path

import pytest

from lupi.errors import LupiError
from lupi.train.processes import _TRIAL, Processes, check_bfloat16

WITHOUT_AMX = {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"}
TRIAL = [sys.executable, "-c", _TRIAL]


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
        Processes("bf16-mixed")
    Processes("32-true")


def run_in_bfloat16(program: str, cwd: Path) -> list[float]:
    """Return the numbers that a program prints, where the machine has bfloat16."""
    environment = {**os.environ, **WITHOUT_AMX}
    if subprocess.run(TRIAL, env=environment, capture_output=True, check=False).returncode:
        pytest.skip("this machine can't compute in bfloat16")
    command = [sys.executable, "-c", program]
    printed = subprocess.check_output(command, env=environment, cwd=cwd, text=True)
    return [float(number) for number in printed.split()]


def test_bfloat16_trains_where_the_machine_has_it(tmp_path: Path) -> None:
    exact, short = run_in_bfloat16(
        "from pathlib import Path\n"
        "from lupi.train.run import run\n"
        "from lupi.train.settings import RunSettings\n"
        "settings = {'task': {'name': 'digits'}, 'network': {'width': 4}, 'method': 'het-dropout',"
        " 'settings': {'sites': ['head.*']},"
        " 'size': 40, 'seed': 0}\n"
        "for precision in ('32-true', 'bf16-mixed'):\n"
        "    train = {'epochs': 2, 'precision': precision}\n"
        "    run_settings = RunSettings.parse({**settings, 'train': train}, '')\n"
        "    print(run(run_settings, Path(precision))['metrics']['val']['loss'])",
        tmp_path,
    )
    assert exact != short
    assert exact == pytest.approx(short, rel=0.02)


def test_a_decoder_with_input_feeding_trains_in_bfloat16(tmp_path: Path) -> None:
    exact, short, similarity = run_in_bfloat16(
        "import torch\n"
        "from lupi_paper.translation.networks.seq2seq import Seq2Seq\n"
        "torch.manual_seed(0)\n"
        "net = Seq2Seq(11, 13, 16, input_feeding=True).eval()\n"
        "x = (torch.randint(1, 11, (4, 5)), torch.randint(1, 13, (4, 6)))\n"
        "grads = []\n"
        "for enabled in (False, True):\n"
        "    net.zero_grad()\n"
        "    with torch.autocast('cpu', torch.bfloat16, enabled=enabled):\n"
        "        loss = net(x).float().log_softmax(2)[..., 3].mean()\n"
        "    loss.backward()\n"
        "    grads.append(torch.cat([p.grad.flatten() for p in net.parameters()]))\n"
        "    print(loss.item())\n"
        "print(torch.cosine_similarity(*grads, dim=0).item())",
        tmp_path,
    )
    assert exact != short
    assert exact == pytest.approx(short, rel=0.02)
    assert similarity > 0.99
