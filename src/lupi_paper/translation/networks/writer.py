"""A decoder's steps of one word, for all hypotheses of a beam search.

A step takes tanh(z) as 2 (sigmoid(2 z) - 1/2), which is several times as fast. It keeps o / 2,
h / 2 and 2 c instead of o, h and c, and the weights make up for these factors. They are powers of
two, so that they change no digit.
"""

import torch
from torch import Tensor

from lupi_paper.translation.networks.seq2seq import Decoder, Memory, no_attention


class Writer:
    """A decoder and the sentences it translates, prepared for steps of one word.

    The projection of a word to the gates of the first layer is computed once for each word that
    occurs, and what attention needs of the sentences once for all hypotheses and steps.

    The states of a hypothesis are one row: o, h of each layer, c of each layer. A step changes
    them in place. The input of a layer is part of the row: the output below it (o below the first)
    stands just before its own h.
    """

    def __init__(self, decoder: Decoder, memory: Memory) -> None:
        self._decoder, self._n_units = decoder, decoder.n_units
        keys, values = decoder.project(memory)  # (N, S, H)
        self._keys, self._values = 2 * keys, 2 * values
        self._padding = no_attention(memory)  # (N, 1, S)
        self._join = 4 * decoder.join.weight[:, decoder.n_units :].t()
        factors = keys.new_ones(4, decoder.n_units)
        factors[2] = 2  # of the gates i, f, g and o, g alone has a tanh
        self._factors = factors.flatten()  # (4 H,)
        self._weights = [(2 * self._factors[:, None] * w).t() for w in decoder.step_weights()]
        self._biases = [self._factors * bias for bias in decoder.step_biases()]
        n_words = decoder.embedding.num_embeddings
        self._gates = keys.new_empty(n_words, 4 * decoder.n_units)
        self._is_known = torch.zeros(n_words, dtype=torch.bool, device=keys.device)
        start = memory.start
        self._state = torch.cat([start.output / 2, *(start.h / 2), *(2 * start.c)], 1)

    def step(self, words: Tensor) -> tuple[Tensor, Tensor]:
        """Read words (N, K): return o / 2 (N K, H) and attention (N, K, S)."""
        n, n_layers = self._n_units, len(self._weights)
        o, *states = self._state.split(n, 1)
        below = o
        for i, weight in enumerate(self._weights):
            inputs = self._state[:, (i + 2) * n - len(weight) : (i + 2) * n]
            if i:
                gates = torch.addmm(self._biases[i - 1], inputs, weight)
            else:
                gates = self._gates_of(words.flatten()).addmm_(inputs, weight)
            below = _cell_(gates, states[i], states[n_layers + i])
        queries = below.unflatten(0, words.shape)  # (N, K, H)
        scores = torch.baddbmm(self._padding, queries, self._keys.transpose(1, 2))
        attention = scores.softmax(2)  # (N, K, S)
        context = torch.bmm(attention, self._values).flatten(0, 1)
        return torch.sub(context.addmm_(below, self._join).sigmoid_(), 0.5, out=o), attention

    def _gates_of(self, words: Tensor) -> Tensor:
        new = words[~self._is_known[words]].unique()
        if len(new):
            weight, bias = self._decoder.word_weights()
            embedded = self._decoder.embedding.weight[new]
            self._gates[new] = self._factors * torch.addmm(bias, embedded, weight.t())
            self._is_known[new] = True
        return self._gates.index_select(0, words)

    def keep(self, sentences: Tensor, hypotheses: Tensor) -> None:
        """Go on with some sentences, and with some of the hypotheses of all sentences (M,)."""
        self._state = self._state.index_select(0, hypotheses)
        if len(sentences) < len(self._keys):
            self._keys, self._values = self._keys[sentences], self._values[sentences]
            self._padding = self._padding[sentences]


def _cell_(gates: Tensor, h: Tensor, c: Tensor) -> Tensor:
    """Change h / 2 and 2 c (B, H) by an LSTM cell with gates i, f, 2 g and o (B, 4 H); return h."""
    i, f, g, o = gates.sigmoid_().chunk(4, 1)
    c.mul_(f).addcmul_(i, g.sub_(0.5), value=4)
    return torch.mul(o, c.sigmoid().sub_(0.5), out=h)
