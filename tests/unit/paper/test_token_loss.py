import pytest
import torch
from torch.nn import functional as F

from lupi_paper.translation.text.vocabulary import PAD
from lupi_paper.translation.token_loss import AT_ONCE, token_loss


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_losses_and_gradients_are_those_of_cross_entropy(smoothing: float) -> None:
    torch.manual_seed(0)
    aligned = 50 * torch.randn(2, AT_ONCE + 3, 16, dtype=torch.double)
    y = torch.randint(1, 11, (2, AT_ONCE + 3))
    y[1, 2] = PAD
    weights = torch.randn(2, AT_ONCE + 3, dtype=torch.double)
    found, expected = (aligned[..., :11].detach().requires_grad_() for _ in range(2))

    losses = token_loss(found, y, smoothing)
    (losses * weights).sum().backward()
    plain = F.cross_entropy(
        expected.flatten(0, 1),
        y.flatten(),
        ignore_index=PAD,
        reduction="none",
        label_smoothing=smoothing,
    ).view_as(y)
    (plain * weights).sum().backward()

    torch.testing.assert_close(losses, plain)
    assert found.grad is not None
    torch.testing.assert_close(found.grad, expected.grad)
    assert losses[1, 2] == 0
    assert not found.grad[1, 2].any()


def test_a_second_backward_pass_is_refused() -> None:
    logits = torch.randn(1, 2, 5, requires_grad=True)
    loss = token_loss(logits, torch.tensor([[1, 2]])).sum()
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_logits_of_half_precision_are_summed_in_single() -> None:
    logits = torch.randn(1, 2, 300).bfloat16()
    y = torch.tensor([[7, 9]])
    with torch.autocast("cpu", torch.bfloat16):
        found = token_loss(logits, y)
    torch.testing.assert_close(found, token_loss(logits.float(), y))
