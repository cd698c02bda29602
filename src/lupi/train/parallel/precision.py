"""Check whether this machine can compute in bfloat16, in a process of its own, which may crash.

Some CPUs, and many virtual ones, announce instructions that they do not have.
"""

import signal
import subprocess
import sys
from functools import cache

import torch
from torch import nn

from lupi.errors import LupiError


@cache
def check_bfloat16() -> None:
    """Raise an error if this machine can't train in bfloat16."""
    if torch.cuda.is_available():
        if not torch.cuda.is_bf16_supported(including_emulation=False):
            raise LupiError("train.precision: this GPU has no bfloat16; use 32-true")
        return
    tried = subprocess.run([sys.executable, "-m", __name__], capture_output=True, check=False)
    if tried.returncode:
        code = tried.returncode
        end = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        raise LupiError(
            f"train.precision: a trial of bfloat16 on this CPU ended with {end}; use 32-true. If "
            "it lacks AMX only, ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 in the environment may help"
        )


def _try_bfloat16() -> None:
    """Train the kinds of layers that the networks of lupi have."""
    convolution, linear = nn.Conv2d(1, 16, 3, padding=1), nn.Linear(16 * 64, 32)
    recurrent = nn.LSTM(32, 32, batch_first=True)
    with torch.autocast("cpu", torch.bfloat16):
        maps = convolution(torch.randn(8, 1, 8, 8)).relu()  # (8, 16, 8, 8)
        states, _ = recurrent(linear(maps.flatten(1))[:, None])  # (8, 1, 32)
    states.float().sum().backward()


if __name__ == "__main__":
    _try_bfloat16()
