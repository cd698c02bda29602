"""The processes that train one run: those that torchrun started, or this one alone."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, TypeVar

import torch
from torch import Tensor, distributed, nn

from lupi.errors import LupiError
from lupi.train.optimizers import Optimizer
from lupi.train.settings import TrainSettings

T = TypeVar("T")


def start_processes(settings: TrainSettings) -> "Processes":
    """Join the processes that torchrun started; without torchrun, return this process alone."""
    n_processes = int(os.environ.get("WORLD_SIZE", 1))
    if n_processes == 1 or not distributed.is_torchelastic_launched():
        return Processes(settings.precision, settings.device)
    try:
        from lupi.train.fabric import FabricProcesses  # takes as long as torch to import
    except ModuleNotFoundError:
        raise LupiError(
            f"torchrun started {n_processes} processes, which needs Lightning Fabric: "
            "pip install 'lupi[distributed]'"
        ) from None
    return FabricProcesses(settings.precision, settings.device)


class Processes:
    """Where training runs: device, precision and processes. This class is one process alone."""

    count = 1
    rank = 0
    """Rank of this process. The first, 0, writes the record."""
    device: torch.device

    def __init__(self, precision: str, device: str = "auto") -> None:
        if precision == "bf16-mixed":
            check_bfloat16()
        self._precision = precision
        self.device = find_device(device)

    def place(self, module: nn.Module) -> None:
        """Move weights to the device, in the run's precision."""
        module.to(self.device)
        if self._precision == "64-true":
            module.double()

    def as_input(self, values: T) -> T:
        """Return data on the device and in the precision of training."""
        if self._precision != "64-true" and self.device.type == "cpu":
            return values
        to_double = self._precision == "64-true"

        def convert(tensor: Tensor) -> Tensor:
            tensor = tensor.to(self.device)
            return tensor.double() if to_double and tensor.is_floating_point() else tensor

        return map_tensors(values, convert)

    def wrap(self, module: nn.Module) -> Any:
        """Return a module whose passes are training passes in the run's precision."""
        return module if self._precision == "32-true" else _InPrecision(module, self._in_precision)

    def backward(self, loss: Tensor) -> None:
        """Compute gradients, added up over all processes."""
        loss.backward()

    def no_sync(self, module: Any) -> AbstractContextManager[Any]:
        """Do not exchange gradients between processes inside the block."""
        return contextlib.nullcontext()

    def clip(self, module: Any, optimizer: Optimizer, max_norm: float) -> None:
        """Limit the norm of the gradients."""
        weights = [w for group in optimizer.param_groups for w in group["params"]]
        torch.nn.utils.clip_grad_norm_(weights, max_norm, error_if_nonfinite=True)

    def share_buffers(self, module: nn.Module) -> None:
        """Copy what is not a weight, such as the statistics of batch norms, from the first."""

    def broadcast(self, value: T) -> T:
        """Return the value of the first process."""
        return value

    def gather(self, value: T) -> list[T]:
        """Return the values of all processes, in the order of their ranks."""
        return [value]

    @contextlib.contextmanager
    def _in_precision(self) -> Iterator[None]:
        if self._precision == "bf16-mixed":
            with torch.autocast(self.device.type, torch.bfloat16):
                yield
            return
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.double)
        try:
            yield
        finally:
            torch.set_default_dtype(before)


def find_device(name: str) -> torch.device:
    """Return a device by its name; `auto` is a GPU if there is one."""
    there = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if name == "auto":
        name = next(kind for kind, is_there in there.items() if is_there)
    device = torch.device("cuda:0" if name == "cuda" else name)
    n_gpus = torch.cuda.device_count()
    if not there[device.type] or (device.type == "cuda" and (device.index or 0) >= n_gpus):
        known = ", ".join(kind for kind, is_there in there.items() if is_there)
        raise LupiError(f"train.device: there is no {name} here; torch has {known}")
    return device


class _InPrecision:
    """A module that is called in a given precision."""

    def __init__(
        self, module: nn.Module, precision: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._module, self._precision = module, precision

    def __call__(self, *arguments: Any) -> Any:
        with self._precision():
            return self._module(*arguments)


def map_tensors(values: T, change: Callable[[Tensor], Tensor]) -> T:
    """Return a tensor, or a (named) tuple of such values, with `change` applied to each tensor."""
    changed: Any = values
    if isinstance(values, Tensor):
        changed = change(values)
    elif isinstance(values, tuple):
        make = getattr(values, "_make", tuple)  # of a named tuple
        changed = make(map_tensors(value, change) for value in values)
    result: T = changed
    return result


@cache
def check_bfloat16() -> None:
    """Raise an error if this machine can't train in bfloat16.

    Some CPUs, and many virtual ones, announce instructions that they do not have. So this is tried
    in a process of its own, which may crash.
    """
    if torch.cuda.is_available():
        if not torch.cuda.is_bf16_supported(including_emulation=False):
            raise LupiError("train.precision: this GPU has no bfloat16; use 32-true")
        return
    tried = subprocess.run([sys.executable, "-c", _TRIAL], capture_output=True, check=False)
    if tried.returncode:
        code = tried.returncode
        end = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        raise LupiError(
            f"train.precision: a trial of bfloat16 on this CPU ended with {end}; use 32-true. If "
            "it lacks AMX only, ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 in the environment may help"
        )


_TRIAL = """
import torch
from torch import nn

convolution, linear = nn.Conv2d(1, 16, 3, padding=1), nn.Linear(16 * 64, 32)
recurrent = nn.LSTM(32, 32, batch_first=True)
with torch.autocast("cpu", torch.bfloat16):
    maps = convolution(torch.randn(8, 1, 8, 8)).relu()  # (8, 16, 8, 8)
    states, _ = recurrent(linear(maps.flatten(1))[:, None])  # (8, 1, 32)
states.float().sum().backward()
"""
"""Trains the kinds of layers that the networks of lupi have."""
