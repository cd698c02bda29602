from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from lupi.noise.layer import add_noise
from lupi.noise.sites import SEQUENCE, attached, find_sites
from lupi_paper.translation.networks import seq2seq
from lupi_paper.translation.networks.seq2seq import Seq2Seq
from lupi_paper.translation.networks.vector_started import VectorStarted
from lupi_paper.translation.text import vocabulary

NETS = [
    {"bidirectional": bidirectional, "input_feeding": input_feeding}
    for bidirectional, input_feeding in product((False, True), (False, True))
]


def make_net(**options: bool) -> Seq2Seq:
    torch.manual_seed(0)
    return Seq2Seq(11, 13, 6, **options)


def padded(x: tuple[Tensor, Tensor], n_source: int, n_before: int) -> tuple[Tensor, Tensor]:
    """Add padding: to the left of the source, to the right of the words before."""
    source, before = x
    zeros = torch.zeros(len(source), 9, dtype=torch.long)
    return torch.cat([zeros[:, :n_source], source], 1), torch.cat([before, zeros[:, :n_before]], 1)


X = (torch.randint(1, 11, (4, 5)), torch.randint(1, 13, (4, 3)))


@pytest.mark.parametrize("options", NETS)
def test_padding_changes_nothing(options: dict[str, bool]) -> None:
    net = make_net(**options).eval()
    plain, wide = net(X), net(padded(X, 4, 2))
    assert plain.shape == (4, 3, 13)
    assert torch.allclose(plain, wide[:, :3], atol=1e-6)
    memory = net.encode(padded(X, 4, 0))
    if not options["bidirectional"]:
        assert memory.states[:, :4].eq(0).all()  # exactly: nothing happened yet
    _, attention, _ = net.decoder.run(X[1], memory, memory.start)
    assert attention[..., :4].eq(0).all()
    assert torch.allclose(attention.sum(2), torch.ones(4, 3))


def test_a_word_does_not_see_those_after_it() -> None:
    net = make_net(input_feeding=True).eval()
    changed = X[1].clone()
    changed[:, 2] = 12 - changed[:, 2]
    assert torch.equal(net(X)[:, :2], net((X[0], changed))[:, :2])


@pytest.mark.parametrize("options", NETS)
def test_steps_one_by_one_are_the_pass_over_all_words(options: dict[str, bool]) -> None:
    net = make_net(**options).eval()
    memory = net.encode(X)
    state, outputs = memory.start, []
    for word in X[1].split(1, dim=1):
        output, _, state = net.decoder.run(word, memory, state)
        outputs.append(net.decoder.words(output))
    assert torch.allclose(torch.cat(outputs, 1), net(X), atol=1e-6)


def plain_loop(net: Seq2Seq, x: tuple[Tensor, Tensor]) -> Tensor:
    """Luong's equations as they stand, by torch's own layers."""
    memory, decoder = net.encode(x), net.decoder
    state = [
        (memory.start.h[i : i + 1], memory.start.c[i : i + 1]) for i in range(len(decoder.layers))
    ]
    o = torch.zeros(len(X[0]), 1, 6)
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
    x = padded(X, 2, 0)
    net = Seq2Seq(11, 13, 6, n_layers=n_layers, input_feeding=True).eval()
    assert torch.allclose(net(x), plain_loop(net, x), atol=1e-6)


def test_the_encoder_is_torchs_own_over_packed_sequences() -> None:
    """The appended one is a bias; both directions begin and end with the words."""
    net = make_net(bidirectional=True).eval()
    layer: Any = net.encoder.layers[0]
    n_units = 3
    reference = torch.nn.LSTM(6, n_units, bidirectional=True, batch_first=True)
    for lstm, end in ((layer.forwards, ""), (layer.backwards, "_reverse")):
        weight = lstm.weight_ih_l0.data
        getattr(reference, f"weight_ih_l0{end}").data = weight[:, :-1].clone()
        getattr(reference, f"bias_ih_l0{end}").data = weight[:, -1].clone()
        getattr(reference, f"weight_hh_l0{end}").data = lstm.weight_hh_l0.data
        getattr(reference, f"bias_hh_l0{end}").data.zero_()
    words = torch.randn(2, 5, 6)
    lengths = torch.tensor([5, 3])
    packed = pack_padded_sequence(words, lengths, batch_first=True)
    expected, (h, c) = reference(packed)
    expected, _ = pad_packed_sequence(expected, batch_first=True)
    shifted = torch.stack([words[0], torch.cat([torch.zeros(2, 6), words[1, :3]])])
    is_word = torch.tensor([[True] * 5, [False, False, True, True, True]])
    inputs = torch.cat([shifted, is_word[..., None].float()], 2)
    states, last_h, last_c = layer(inputs, is_word)
    assert torch.allclose(states[0], expected[0], atol=1e-6)
    assert torch.allclose(states[1, 2:], expected[1, :3], atol=1e-6)
    assert torch.allclose(last_h[0], torch.cat([h[0], h[1]], 1), atol=1e-6)
    assert torch.allclose(last_c[0], torch.cat([c[0], c[1]], 1), atol=1e-6)


@pytest.mark.parametrize("input_feeding", [False, True])
def test_noise_between_layers_is_shared_over_time(input_feeding: bool) -> None:
    """With the same word at each step and a first layer at rest, only noise could tell steps."""
    net = make_net(input_feeding=input_feeding).train()
    for site in find_sites(net).values():
        site.p = 0.0  # type: ignore[assignment]
    sites = find_sites(net, ["decoder.between.*"])
    factors: list[Tensor] = []

    def noise(h: Tensor) -> Tensor:
        noisy = add_noise(h, torch.zeros(1), SEQUENCE, "channel")
        factors.append(noisy / h)
        return noisy

    with attached(sites, dict.fromkeys(sites, noise)):
        net(X)
    (factor,) = factors  # asked once, also where words come one by one
    assert torch.allclose(factor, factor[:, :1].expand_as(factor), atol=1e-3)
    assert factor[:, 0].std() > 0.3


def test_weights_are_drawn_evenly_and_may_be_tied() -> None:
    net = make_net(tied=True)
    assert net.decoder.words.weight is net.decoder.embedding.weight
    every = torch.cat([weight.flatten() for weight in net.parameters()])
    assert 0.09 < every.abs().max() <= seq2seq.INIT


def test_a_vector_changes_the_first_state_of_rows_that_have_it() -> None:
    net = make_net()
    started = VectorStarted(net, 3).eval()
    has = torch.tensor([True, False, True, False])
    output = started((*X, torch.randn(4, 3), has))
    same = torch.isclose(output, net.eval()(X)).flatten(1).all(1)
    assert torch.equal(same, ~has)


def test_padding_is_the_vocabularys() -> None:
    assert seq2seq.PAD == vocabulary.PAD
