"""Record the inputs or outputs of a layer during a pass, without changing the network."""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from lupi.errors import LupiError


@contextlib.contextmanager
def layer_inputs(layer: nn.Module, cut: bool = False) -> Iterator[list[Tensor]]:
    """Collect the inputs of a layer in passes inside the block.

    With `cut`, no gradient flows back through the layer; the collected inputs keep theirs.
    """
    seen: list[Tensor] = []

    def hook(module: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...] | None:
        seen.append(inputs[0])
        return (inputs[0].detach(), *inputs[1:]) if cut else None

    handle = layer.register_forward_pre_hook(hook)
    try:
        yield seen
    finally:
        handle.remove()


@contextlib.contextmanager
def layer_outputs(layer: nn.Module) -> Iterator[list[Any]]:
    """Collect the outputs of a layer in passes inside the block."""
    seen: list[Any] = []
    handle = layer.register_forward_hook(lambda module, inputs, output: seen.append(output))
    try:
        yield seen
    finally:
        handle.remove()


def linear_layers(net: nn.Module) -> list[nn.Linear]:
    """Return the linear layers in order; raise an error if there are none."""
    layers = [module for module in net.modules() if isinstance(module, nn.Linear)]
    if not layers:
        raise LupiError(f"this method needs a linear layer; {type(net).__name__} has none")
    return layers


@torch.no_grad()
def try_pass(net: nn.Module, x: Any) -> Tensor:
    """Return the output for `x` in `eval()`, to determine shapes; restore the mode."""
    was_training = net.training
    net.eval()
    try:
        output: Tensor = net(x)
    finally:
        net.train(was_training)
    return output


def check_learned(net: nn.Module, layer: nn.Module, x: Any, who: str) -> None:
    """Raise an error if a network has no weights before a layer, such as a linear network.

    Args:
        net: the student.
        layer: The layer whose input a method trains by x*; a site is the identity.
        x: two rows.
        who: Name of the method.
    """
    was_training = net.training
    net.eval()
    try:
        with torch.enable_grad(), layer_inputs(layer) as seen:
            net(x)
    finally:
        net.train(was_training)
    if not seen[0].requires_grad:
        raise LupiError(
            f"{who} trains hidden layers by x*, but this network has none: its only layer reads x "
            "itself; use a network with hidden layers, or a method that trains outputs, such as "
            "distillation"
        )
