"""Batch norm beside noise: passes that leave its statistics alone, and clean re-estimation.

Noise in front of a batch norm makes the running statistics those of noisy activations, while
predictions have no noise. `reestimate` replaces them by statistics of noise-free passes.
"""

import contextlib
from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm


def batchnorms(net: nn.Module) -> list[_BatchNorm]:
    """Return the batch norms of a network that keep running statistics."""
    return [m for m in net.modules() if isinstance(m, _BatchNorm) and m.track_running_stats]


@contextlib.contextmanager
def untracked(net: nn.Module) -> Iterator[None]:
    """Let batch norms use the batch's own statistics in training without recording them."""
    layers = batchnorms(net)
    for layer in layers:
        layer.track_running_stats = False
    try:
        yield
    finally:
        for layer in layers:
            layer.track_running_stats = True


@torch.no_grad()
def reestimate(net: nn.Module, inputs: Iterable[Tensor]) -> None:
    """Replace running statistics by the plain average over noise-free passes of `inputs`.

    Everything but the batch norms is in `eval()` for these passes: no dropout and no noise.
    The network is left in `eval()`.
    """
    net.eval()
    layers = batchnorms(net)
    if not layers:
        return
    momenta = [layer.momentum for layer in layers]
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None  # PyTorch's word for a cumulative average
        layer.train()
    try:
        for x in inputs:
            net(x)
    finally:
        for layer, momentum in zip(layers, momenta, strict=True):
            layer.momentum = momentum
        net.eval()
