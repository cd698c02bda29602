"""Batch norm with noise: passes that do not update its statistics, and re-estimation.

Noise before a batch norm distorts its running statistics, which predictions use without noise.
`reestimate` recomputes them from noise-free passes.
"""

import contextlib
from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm


def batchnorms(net: nn.Module) -> list[_BatchNorm]:
    """Return the batch norms of a network with running statistics."""
    return [m for m in net.modules() if isinstance(m, _BatchNorm) and m.track_running_stats]


@contextlib.contextmanager
def untracked(net: nn.Module) -> Iterator[None]:
    """Let batch norms use batch statistics without updating the running statistics."""
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
    """Replace running statistics by averages over noise-free passes of `inputs`.

    All layers except batch norms are in `eval()` during these passes: no dropout and no noise. The
    network stays in `eval()` afterwards.
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
