"""A linear layer with a fast forward pass for any number of outputs on a CPU.

A product takes up to 1.7 times as long if the rows of its result are not aligned, as those of
6,803 words are. So its rows are part of longer ones.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

N_ALIGNED = 16
"""Numbers of 32 bits that the processor reads at once."""


class AlignedLinear(nn.Linear):
    """`nn.Linear` with a bias; its output is not contiguous where that is faster."""

    def forward(self, input: Tensor) -> Tensor:
        """Map (..., in) to (..., out)."""
        is_plain = (
            self.out_features % N_ALIGNED == 0
            or input.device.type != "cpu"
            or torch.is_autocast_enabled("cpu")
            or torch.compiler.is_compiling()
        )
        if is_plain:
            return super().forward(input)
        rows: Tensor = _Product.apply(input.flatten(0, -2), self.weight, self.bias)  # type: ignore[no-untyped-call]
        output: Tensor = rows.unflatten(0, input.shape[:-1])
        return output


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(rows, weight)
        shape = len(rows), len(weight)
        strides = shape[1] + -shape[1] % N_ALIGNED, 1
        aligned = torch.empty_strided(shape, strides, dtype=rows.dtype, device=rows.device)
        return torch.addmm(bias, rows, weight.t(), out=aligned)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        rows, weight = ctx.saved_tensors
        ones = d_outputs.new_ones(len(rows))  # a product is faster than a sum
        return d_outputs @ weight, d_outputs.t() @ rows, ones @ d_outputs
