"""The cross-entropy of tokens, for logits of many words.

`F.cross_entropy` keeps five tensors as large as the logits on the way to their gradient. Here there
is one more than the logits: the probabilities, which become the gradient in place.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from lupi.data.text.vocabulary import PAD


def token_loss(output: Tensor, y: Tensor, smoothing: float = 0.0) -> Tensor:
    """Return the cross-entropy of each token (B, T), 0 on padding.

    Args:
        output: logits (B, T, V).
        y: tokens (B, T).
        smoothing: the part of each label that is spread evenly over all words.
    """
    logits, tokens = output.flatten(0, 1), y.flatten()
    if logits.dtype not in (torch.float32, torch.float64) or torch.compiler.is_compiling():
        losses = F.cross_entropy(
            logits, tokens, ignore_index=PAD, reduction="none", label_smoothing=smoothing
        )
    else:
        losses = _TokenLoss.apply(logits, tokens, smoothing)  # type: ignore[no-untyped-call]
    return losses.view_as(y)


class _TokenLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, tokens: Tensor, smoothing: float) -> Tensor:
        probabilities = logits.softmax(1)  # (R, V)
        # The log of the sum of exponentials is a logit minus its log-probability.
        total = logits.amax(1) - probabilities.amax(1).log()
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
