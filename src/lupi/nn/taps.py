"""Read what enters or leaves a layer during a pass, and leave no trace on the network."""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from lupi.errors import LupiError


@contextlib.contextmanager
def entering(layer: nn.Module, cut: bool = False) -> Iterator[list[Tensor]]:
    """Collect what enters a layer in passes inside the block.

    With `cut`, no gradient goes back through the layer; what is collected keeps its own.
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
def leaving(layer: nn.Module) -> Iterator[list[Any]]:
    """Collect what leaves a layer in passes inside the block: tensors, or what else it returns."""
    seen: list[Any] = []
    handle = layer.register_forward_hook(lambda module, inputs, output: seen.append(output))
    try:
        yield seen
    finally:
        handle.remove()


def linear_layers(net: nn.Module) -> list[nn.Linear]:
    """Return the linear layers in the order of the network; refuse one without any."""
    layers = [module for module in net.modules() if isinstance(module, nn.Linear)]
    if not layers:
        raise LupiError(f"this method reads a linear layer; {type(net).__name__} has none")
    return layers


@torch.no_grad()
def try_pass(net: nn.Module, x: Any) -> Tensor:
    """Return the output for `x` in `eval()`, to find out shapes; the network stays as it was."""
    was_training = net.training
    net.eval()
    try:
        output: Tensor = net(x)
    finally:
        net.train(was_training)
    return output


def check_learned(net: nn.Module, layer: nn.Module, x: Any, who: str) -> None:
    """Refuse a network in which no weight comes before a layer, such as a linear one.

    Args:
        net: the student.
        layer: whose input a method teaches by x*; a site is the identity.
        x: two rows.
        who: the method.
    """
    was_training = net.training
    net.eval()
    try:
        with torch.enable_grad(), entering(layer) as seen:
            net(x)
    finally:
        net.train(was_training)
    if not seen[0].requires_grad:
        raise LupiError(
            f"{who} teaches hidden layers by x*, and this network has none: its only layer reads x "
            "itself; take a network with hidden layers, or a method that teaches outputs, such as "
            "distillation"
        )
