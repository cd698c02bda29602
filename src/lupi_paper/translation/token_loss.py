"""The cross-entropy of tokens, for logits of many words on a CPU.

`F.cross_entropy` makes four more tensors as large as the logits on the way to their gradient, and
fresh memory takes longer than the arithmetic. Here there is one: the probabilities, which become
the gradient in place. Its rows are aligned, as `AlignedLinear` likes them.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from lupi_paper.translation.networks.aligned import N_ALIGNED
from lupi_paper.translation.text.vocabulary import PAD

AT_ONCE = 64
"""Rows whose softmax is computed while they are in the processor's cache."""


def token_loss(output: Tensor, y: Tensor, smoothing: float = 0.0) -> Tensor:
    """Return the cross-entropy of each token (B, T), 0 on padding.

    Args:
        output: logits (B, T, V).
        y: tokens (B, T).
        smoothing: the part of each label that is spread evenly over all words.
    """
    logits, tokens = output.flatten(0, 1), y.flatten()
    is_plain = (
        output.device.type != "cpu"
        or output.dtype not in (torch.float32, torch.float64)
        or torch.compiler.is_compiling()
    )
    if is_plain:
        losses = F.cross_entropy(
            logits, tokens, ignore_index=PAD, reduction="none", label_smoothing=smoothing
        )
    else:
        losses = _TokenLoss.apply(logits, tokens, smoothing)  # type: ignore[no-untyped-call]
    return losses.view_as(y)


class _TokenLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, tokens: Tensor, smoothing: float) -> Tensor:
        n_words = logits.shape[1]
        n_columns = n_words + -n_words % N_ALIGNED
        aligned = logits.new_empty(len(logits), n_columns)
        block = logits.new_full((AT_ONCE, n_columns), -torch.inf)
        totals = []
        for rows, into in zip(logits.split(AT_ONCE), aligned.split(AT_ONCE), strict=True):
            some = block[: len(rows)]
            some[:, :n_words] = rows
            torch.softmax(some, 1, out=into)
            # The log of the sum of exponentials is a logit minus its log-probability.
            totals.append(some.amax(1) - into.amax(1).log())
        probabilities, total = aligned[:, :n_words], torch.cat(totals)
        expected = logits.gather(1, tokens[:, None])[:, 0]
        if smoothing:
            expected = (1 - smoothing) * expected + smoothing * logits.mean(1)
        ctx.save_for_backward(probabilities, tokens)
        ctx.smoothing = smoothing
        return (total - expected).masked_fill(tokens == PAD, 0)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_losses: Tensor) -> tuple[Tensor, None, None]:
        gradient, tokens = ctx.saved_tensors
        d = d_losses.masked_fill(tokens == PAD, 0)[:, None]  # (R, 1)
        # A second backward pass is refused by torch, as what was saved has changed.
        gradient.mul_(d)
        if ctx.smoothing:
            gradient.sub_(d * (ctx.smoothing / gradient.shape[1]))
        gradient.scatter_add_(1, tokens[:, None], d * (ctx.smoothing - 1))
        return gradient, None, None
