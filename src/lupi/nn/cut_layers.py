"""Layers that concern more than a row, in passes that see a part of a batch: see `lupi.nn.rows`.

Networks are not changed for this: during such a pass, PyTorch's dropout and batch norm are
computed otherwise, in whatever module they are called.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from lupi.nn import rows


@contextlib.contextmanager
def passing(part: rows.Part | None) -> Iterator[None]:
    """Let the forward passes inside the block be those of a part; None: of a whole batch."""
    with contextlib.nullcontext() if part is None else _OfTheBatch(), rows.seeing(part):
        yield


class _OfTheBatch(TorchFunctionMode):
    """Dropout that draws for the whole batch, batch norm over the rows of all processes."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        return _INSTEAD.get(func, func)(*args, **kwargs or {})


def _dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    if not training or p == 0:
        return F.dropout(input, p, training, inplace)
    return input * rows.draw(lambda whole: F.dropout(torch.ones_like(whole), p), input)


def _batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    if not training:
        return F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
    x = input.to(torch.promote_types(input.dtype, torch.float32))
    dims = [0, *range(2, x.dim())]
    shape = [1, -1, *[1] * (x.dim() - 2)]  # of a value per channel
    n = rows.total(x.new_tensor(x.numel() / x.shape[1])).clamp(min=1)
    mean = rows.total(x.sum(dims)) / n
    centred = x - mean.view(shape)
    var = rows.total(centred.square().sum(dims)) / n
    if running_mean is not None and running_var is not None:
        with torch.no_grad():
            running_mean.lerp_(mean.to(running_mean.dtype), momentum)
            unbiased = var * n / (n - 1).clamp(min=1)
            running_var.lerp_(unbiased.to(running_var.dtype), momentum)
    out = centred * (var + eps).rsqrt().view(shape)
    out = out if weight is None else out * weight.view(shape)
    out = out if bias is None else out + bias.view(shape)
    return out.to(input.dtype)


_INSTEAD: dict[Callable[..., Any], Callable[..., Any]] = {
    F.dropout: _dropout,
    F.batch_norm: _batch_norm,
}
