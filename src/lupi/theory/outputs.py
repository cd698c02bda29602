"""What Proposition 2 asks of a network's outputs, measured on data."""

from typing import NamedTuple

from torch import Tensor

from lupi.errors import LupiError


class OutputScale(NamedTuple):
    """How far outputs reach and spread over the rows of a data set."""

    xi: float
    """The largest standard deviation over rows, of all outputs."""
    max_output: float
    """M_z: the largest absolute value."""


def measure_outputs(outputs: Tensor) -> OutputScale:
    """Measure outputs (n, C) of a network on n rows.

    The paper has Var(h(x_i)) <= xi^2 without saying over what; here it is over rows.
    """
    if outputs.dim() != 2 or len(outputs) < 2:
        raise LupiError(f"outputs: got shape {tuple(outputs.shape)}, expected (n, C) with n >= 2")
    if not outputs.isfinite().all():
        raise LupiError("outputs: some are not finite, so they have no variance; did it diverge?")
    spread = outputs.double().std(0, correction=0)
    return OutputScale(spread.max().item(), outputs.abs().max().item())
