"""Measure the constants of the bounds on a network's outputs and losses."""

from typing import NamedTuple

from torch import Tensor
from torch.nn import functional as F

from lupi.errors import LupiError


class OutputScale(NamedTuple):
    """Range and spread of outputs and losses over the rows of a dataset."""

    xi: float
    """The largest standard deviation over rows, of all outputs."""
    max_output: float
    """M_z: the largest absolute value."""
    loss_std: float
    """Standard deviation of the squared distance to the one-hot label."""
    max_loss: float
    """The largest observed distance; not an upper bound."""


def measure_outputs(outputs: Tensor, y: Tensor) -> OutputScale:
    """Measure outputs (n, C) of a network on n rows with labels (n,).

    The paper does not say over what Var(h(x_i)) <= xi^2 is taken; here it is over rows.
    """
    is_class = y.shape == outputs.shape[:1] and not y.is_floating_point()
    if outputs.dim() != 2 or len(outputs) < 2 or not is_class:
        raise LupiError(
            f"outputs: got shape {tuple(outputs.shape)} and targets {tuple(y.shape)} of {y.dtype}, "
            "expected outputs (n, C) of a classifier and n whole labels, n >= 2"
        )
    if not outputs.isfinite().all():
        raise LupiError("outputs: some are not finite; did the training diverge?")
    outputs = outputs.double()
    losses = (outputs - F.one_hot(y, outputs.shape[1])).square().sum(1)
    return OutputScale(
        outputs.std(0, correction=0).max().item(),
        outputs.abs().max().item(),
        losses.std(correction=0).item(),
        losses.max().item(),
    )
