"""Count and weight the paths through a network from inputs and biases to outputs, in logs.

    output_c(x) = sum over paths p to c of  x_p * gate_p(x) * w_p

x_p is the input where the path begins (1 at a bias), w_p the product of the weights on it, and
gate_p 1 where every ReLU and max-pooling on it lets it pass. So a path exists for every choice that
a pooling may make, batch norm (with its running statistics) is a scale and a bias per channel, and
padding begins no path.

    P   = number of paths to all outputs
    M_w = max over outputs c of sum over paths p to c of w_p^2

P and M_w come from one pass of ones through the network with every weight replaced by 1, or by its
square. Each layer's result is divided by its largest value, whose log is kept: nothing overflows.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm

from lupi.errors import LupiError
from lupi.networks.vgg import VGG, Pixels
from lupi.noise.sites import DROPOUTS, Site

CHAINS = (nn.Sequential, VGG)
"""Modules whose forward pass is their children's, in turn."""
PASSED_BY = (nn.ReLU, nn.Identity, Site, *DROPOUTS)
SUPPORTED = (
    "Sequential and VGG of Linear, Conv2d, BatchNorm, ReLU, MaxPool2d, AvgPool2d, "
    "AdaptiveAvgPool2d, Flatten and Dropout"
)

Edges = Callable[[Tensor], Tensor]
"""Replaces the weights in a pass: by ones to count paths, by squares for their norm."""


def log_path_count(net: nn.Module, shape: Sequence[int]) -> float:
    """Return log P of a network for one example of x of this shape, such as (3, 224, 224)."""
    values, log_scale = _pass_ones(net, shape, torch.ones_like)
    return math.log(values.double().sum().item()) + log_scale


def log_path_norm(net: nn.Module, shape: Sequence[int]) -> float:
    """Return log M_w of a network for one example of x of this shape; -inf if all paths weigh 0."""
    values, log_scale = _pass_ones(net, shape, torch.square)
    largest = values.double().max().item()
    return math.log(largest) + log_scale if largest > 0 else -math.inf


@torch.no_grad()
def _pass_ones(net: nn.Module, shape: Sequence[int], edges: Edges) -> tuple[Tensor, float]:
    """Return the sum over paths to each output, and the log of the factor divided out."""
    weight = next(net.parameters(), torch.zeros(()))
    h = torch.ones(1, *shape, dtype=weight.dtype, device=weight.device)
    log_scale = 0.0
    for name, layer in _layers(net, ""):
        h = _through(layer, name, h, edges, start=math.exp(-log_scale))
        largest = h.max().item()
        if largest > 0:
            h = h / largest
            log_scale += math.log(largest)
    return h[0], log_scale


def _layers(module: nn.Module, name: str) -> Iterator[tuple[str, nn.Module]]:
    """Yield the layers in the order of a forward pass."""
    if not isinstance(module, CHAINS):
        yield name, module
        return
    for key, child in module.named_children():
        yield from _layers(child, f"{name}.{key}" if name else key)


def _through(layer: nn.Module, name: str, h: Tensor, edges: Edges, start: float) -> Tensor:
    """Pass sums over paths through one layer; `start` is the weight of a new path."""
    if isinstance(layer, PASSED_BY):
        return h
    if isinstance(layer, nn.Flatten):
        return layer(h)  # type: ignore[no-any-return]
    if isinstance(layer, nn.Linear) or (
        isinstance(layer, nn.Conv2d) and layer.padding_mode == "zeros"
    ):
        weights = {"weight": edges(layer.weight)}
        if layer.bias is not None:
            weights["bias"] = start * edges(layer.bias)  # a path begins at each bias
        return functional_call(layer, weights, (h,))  # type: ignore[no-any-return]
    if isinstance(layer, _BatchNorm) and layer.running_var is not None:
        assert layer.running_mean is not None
        scale = (layer.running_var + layer.eps).rsqrt()
        scale = scale if layer.weight is None else scale * layer.weight
        shift = -layer.running_mean * scale
        return _affine(h, scale, shift if layer.bias is None else shift + layer.bias, edges, start)
    if isinstance(layer, Pixels):
        scale = 1 / layer.std.flatten()
        return _affine(h, scale, -layer.mean.flatten() * scale, edges, start)
    if isinstance(layer, nn.MaxPool2d) and not layer.ceil_mode and layer.dilation == 1:
        size = (layer.kernel_size, layer.stride, layer.padding)
        return F.avg_pool2d(h, *size, divisor_override=1)  # any of the window may pass
    if isinstance(layer, nn.AvgPool2d) and not (layer.ceil_mode or layer.padding):
        summed = F.avg_pool2d(h, layer.kernel_size, layer.stride, divisor_override=1)
        return summed * edges(torch.tensor(1 / math.prod(_pair(layer.kernel_size))))
    if isinstance(layer, nn.AdaptiveAvgPool2d):
        rows, columns = (
            _averages(n_in, n_out or n_in, edges).to(h)
            for n_in, n_out in zip(h.shape[2:], _pair(layer.output_size), strict=True)
        )
        return rows @ h @ columns.T  # (1, C, H, W) -> (1, C, *output_size)
    raise LupiError(
        f"paths can't be followed through {name or 'the network'}, {layer}; "
        f"supported: {SUPPORTED}, without unusual options"
    )


def _affine(h: Tensor, scale: Tensor, shift: Tensor, edges: Edges, start: float) -> Tensor:
    """Scale and shift each channel of (1, C, ...)."""
    shape = (-1, *[1] * (h.dim() - 2))
    return h * edges(scale).view(shape) + start * edges(shift).view(shape)


def _averages(n_in: int, n_out: int, edges: Edges) -> Tensor:
    """Return the edges (n_out, n_in) of adaptive averaging along one axis."""
    weights = torch.zeros(n_out, n_in, dtype=torch.float64)
    for i in range(n_out):
        begin, end = i * n_in // n_out, -(-(i + 1) * n_in // n_out)
        weights[i, begin:end] = edges(torch.tensor(1 / (end - begin), dtype=torch.float64))
    return weights


def _pair(size: Any) -> tuple[Any, Any]:
    """Return PyTorch's height and width, which may be given as one number."""
    return (size[0], size[1]) if isinstance(size, Sequence) else (size, size)
