"""Dropout and batch norm in a pass over a part of a batch.

Dropout must draw for the whole batch, and batch norm must use the statistics of all processes
(`nn.SyncBatchNorm` needs GPUs). During such a pass, these layers get another `forward`; the network
and its weights do not change.
"""

import contextlib
from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from lupi.core.whole_batch import CutBatch
from lupi.nn.sites import DROPOUTS


@contextlib.contextmanager
def layers_of_the_whole_batch(net: nn.Module, whole: CutBatch) -> Iterator[None]:
    """Let dropout and batch norm act as on the whole batch."""
    layers: list[nn.Module] = []
    for layer in net.modules():
        if isinstance(layer, DROPOUTS):
            layer.forward = partial(_dropout, layer, whole)  # type: ignore[method-assign]
        elif isinstance(layer, _BatchNorm):
            layer.forward = partial(_batch_norm, layer, whole)  # type: ignore[method-assign]
        else:
            continue
        layers.append(layer)
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward


def _dropout(layer: nn.Module, whole: CutBatch, x: Tensor) -> Tensor:
    if not layer.training or layer.p == 0:
        return x
    drop = type(layer).forward  # the layer's own, which may drop whole channels or words
    return x * whole.draw(lambda like: drop(layer, torch.ones_like(like)), x)


def _batch_norm(layer: _BatchNorm, whole: CutBatch, input: Tensor) -> Tensor:
    if not layer.training:
        output: Tensor = type(layer).forward(layer, input)
        return output
    x = input.to(torch.promote_types(input.dtype, torch.float32))
    dims = [0, *range(2, x.dim())]
    shape = [1, -1, *[1] * (x.dim() - 2)]  # of a value per channel
    n = whole.sum(x.new_tensor(x.numel() / x.shape[1])).clamp(min=1)
    mean = whole.sum(x.sum(dims)) / n
    centred = x - mean.view(shape)
    var = whole.sum(centred.square().sum(dims)) / n
    if layer.track_running_stats:
        _track(layer, mean, var * n / (n - 1).clamp(min=1))
    out = centred * (var + layer.eps).rsqrt().view(shape)
    if layer.affine:
        out = out * layer.weight.view(shape) + layer.bias.view(shape)
    return out.to(input.dtype)


@torch.no_grad()
def _track(layer: _BatchNorm, mean: Tensor, var: Tensor) -> None:
    """Update the running statistics as PyTorch does."""
    assert layer.running_mean is not None
    assert layer.running_var is not None
    assert layer.num_batches_tracked is not None
    layer.num_batches_tracked.add_(1)
    momentum = layer.momentum
    if momentum is None:  # a cumulative average
        momentum = 1 / layer.num_batches_tracked.item()
    layer.running_mean.lerp_(mean.to(layer.running_mean.dtype), momentum)
    layer.running_var.lerp_(var.to(layer.running_var.dtype), momentum)
