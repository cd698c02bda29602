"""Input feeding: the forward pass is the plain loop, the backward pass its derivative."""

import pytest
import torch
from torch import Tensor

from lupi_paper.translation.networks.fed_steps import Steps, fed_steps
from lupi_paper.translation.networks.seq2seq import Seq2Seq

B, T, S, H = 3, 4, 5, 6
X = (torch.randint(1, 11, (B, S)), torch.randint(1, 13, (B, T)))
X[0][0, :2] = 0  # padding


def plain_loop(net: Seq2Seq, x: tuple[Tensor, Tensor]) -> Tensor:
    """Luong's equations as they stand, by torch's own layers."""
    memory, decoder = net.encode(x), net.decoder
    state = [
        (memory.start.h[i : i + 1], memory.start.c[i : i + 1]) for i in range(len(decoder.layers))
    ]
    o = torch.zeros(B, 1, H)
    logits = []
    for word in decoder.embedding(x[1]).split(1, dim=1):
        h = torch.cat([word, o], 2)
        for i, lstm in enumerate(decoder.layers):
            h, state[i] = lstm(h, state[i])
        scores = decoder.query(h) @ memory.states.transpose(1, 2)
        a = scores.masked_fill(~memory.is_word[:, None], -torch.inf).softmax(2)
        o = torch.tanh(decoder.join(torch.cat([a @ memory.states, h], 2)))
        logits.append(decoder.words(o))
    return torch.cat(logits, 1)


@pytest.mark.parametrize("n_layers", [1, 2, 3])
def test_steps_are_the_plain_loop(n_layers: int) -> None:
    torch.manual_seed(0)
    net = Seq2Seq(11, 13, H, n_layers=n_layers, input_feeding=True).eval()
    assert torch.allclose(net(X), plain_loop(net, X), atol=1e-6)


def test_what_is_compiled_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    net = Seq2Seq(11, 13, H, input_feeding=True).eval()
    expected = net(X)
    monkeypatch.setattr("torch.compiler.is_compiling", lambda: True)
    assert torch.allclose(net(X), expected, atol=1e-6)


@pytest.mark.parametrize("n_layers", [1, 2])
def test_the_backward_pass_is_the_derivative(n_layers: int) -> None:
    torch.manual_seed(0)
    shapes = [
        *((T, B, 4 * H), (B, S, H), (B, S, H)),
        *((n_layers, B, H), (n_layers, B, H), (B, H)),
        *((H, H), (B, H)),
        *[(4 * H, 2 * H)] * n_layers,
        *[(4 * H,)] * (n_layers - 1),
        *[(B, H)] * (n_layers - 1),
    ]
    tensors = [torch.randn(shape, dtype=torch.double, requires_grad=True) for shape in shapes]
    padding = torch.zeros(B, 1, S, dtype=torch.double)
    padding[0, 0, :2] = -torch.inf

    def run(*given: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        words, keys, values, h, c, o, join, factor, *others = given
        n = n_layers
        steps: Steps = fed_steps(
            *(words, keys, values, padding, (h, c, o), join, factor),
            *(others[:n], others[n : 2 * n - 1], others[2 * n - 1 :]),
        )
        return steps.outputs, steps.h, steps.c

    assert torch.autograd.gradcheck(run, tensors)
