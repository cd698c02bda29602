"""A recurrent encoder and decoder with attention: the student for translation.

    a_t = softmax over s of (h_t W m_s),   c_t = sum over s of a_ts m_s,   o_t = tanh(V [c_t; h_t])

m are the states of the encoder's last layer, h those of the decoder's. Luong, Pham, Manning:
"Effective Approaches to Attention-based Neural Machine Translation", EMNLP 2015 (`general`).

Sources are padded on the left. The encoder's layers have no bias of their own; instead a one is
appended to their input, a zero where there is padding. So their states stay exactly zero up to the
first word, their last states are those of the last word, and no sequence has to be packed.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

PAD = 0
INIT = 0.1
"""Weights are drawn evenly from [-INIT, INIT], as OpenNMT draws them."""


class State(NamedTuple):
    """What a decoder carries from word to word."""

    h: Tensor
    """(L, B, H)"""
    c: Tensor
    """(L, B, H)"""
    output: Tensor
    """(B, H): the last o_t"""

    def rows(self, index: Tensor) -> "State":
        """Return the states of some rows."""
        return State(self.h[:, index], self.c[:, index], self.output[index])


class Memory(NamedTuple):
    """A sentence as the decoder sees it."""

    states: Tensor
    """(B, S, H)"""
    is_word: Tensor
    """(B, S) bool, False on padding"""
    start: State

    def rows(self, index: Tensor) -> "Memory":
        """Return some rows."""
        return Memory(self.states[index], self.is_word[index], self.start.rows(index))


class Source(NamedTuple):
    """What attention needs of sentences, computed once for all words."""

    keys: Tensor
    """W m_s (B, S, H)"""
    values: Tensor
    """The part of V that c_t meets times m_s (B, S, H)"""
    padding: Tensor
    """0, or -inf on padding (B, 1, S): added to scores, it leaves padding no attention."""

    def rows(self, index: Tensor) -> "Source":
        """Return some rows."""
        return Source(*(part[index] for part in self))


class Encoder(nn.Module):
    """Read a sentence. Its sites: `embedded`, and `between.0` … between the layers."""

    def __init__(
        self,
        n_words: int,
        n_units: int,
        n_layers: int,
        bidirectional: bool,
        dropout: float,
        embedding_dropout: float,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_words, n_units)
        self.embedded = nn.Dropout(embedding_dropout)
        self.layers = nn.ModuleList(_EncoderLayer(n_units, bidirectional) for _ in range(n_layers))
        self.between = nn.ModuleList(nn.Dropout(dropout) for _ in range(n_layers - 1))

    def forward(self, source: Tensor) -> Memory:
        """Map (B, S) tokens, padded on the left, to their memory."""
        is_word = source != PAD
        one = is_word[..., None].to(self.embedding.weight.dtype)  # (B, S, 1)
        states = self.embedded(self.embedding(source)) * one  # (B, S, H)
        last_h, last_c = [], []
        for i, layer in enumerate(self.layers):
            if i:
                states = self.between[i - 1](states)
            states, h, c = layer(torch.cat([states, one], 2), is_word)
            last_h.append(h)
            last_c.append(c)
        start = State(torch.cat(last_h), torch.cat(last_c), torch.zeros_like(states[:, 0]))
        return Memory(states, is_word, start)


class _EncoderLayer(nn.Module):
    """A layer that reads forwards, or in two halves forwards and backwards."""

    def __init__(self, n_units: int, bidirectional: bool) -> None:
        super().__init__()
        n_out = n_units // 2 if bidirectional else n_units
        self.forwards = nn.LSTM(n_units + 1, n_out, bias=False, batch_first=True)
        self.backwards: nn.LSTM | None = None
        if bidirectional:
            self.backwards = nn.LSTM(n_units + 1, n_out, bias=False, batch_first=True)

    def forward(self, inputs: Tensor, is_word: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Map (B, S, H + 1) to states (B, S, H), and the last h and c (1, B, H)."""
        states, (h, c) = self.forwards(inputs)
        if self.backwards is None:
            return states, h, c
        places = _reversed_places(is_word)
        reverse, (h_back, c_back) = self.backwards(_taken(inputs, places))
        reverse = _taken(reverse, places)
        return (
            torch.cat([states, reverse], 2),
            torch.cat([h, h_back], 2),
            torch.cat([c, c_back], 2),
        )


def _reversed_places(is_word: Tensor) -> Tensor:
    """Return for each place the one that stands there when the words are reversed.

    Places (B S,) are counted through all sentences.
    """
    n_rows, n_places = is_word.shape
    place = torch.arange(n_places, device=is_word.device).expand_as(is_word)
    n_padding = (~is_word).sum(1, keepdim=True)
    place = torch.where(is_word, n_places - 1 + n_padding - place, place)
    first = n_places * torch.arange(n_rows, device=is_word.device)
    return (first[:, None] + place).flatten()


def _taken(states: Tensor, places: Tensor) -> Tensor:
    """Return the states (B, S, H) at other places: `gather` takes ten times as long."""
    return states.flatten(0, 1).index_select(0, places).view_as(states)


class Decoder(nn.Module):
    """Write a translation. Its sites: `embedded`, `between.0` … and `output`.

    With `input_feeding` the last o_t is part of a word's input, so words come one after the other
    and what a site does is drawn once for all of them, by what it does to ones.
    """

    def __init__(
        self,
        n_words: int,
        n_units: int,
        n_layers: int,
        input_feeding: bool,
        dropout: float,
        embedding_dropout: float,
        tied: bool,
    ) -> None:
        super().__init__()
        self.input_feeding, self.n_units = input_feeding, n_units
        self.embedding = nn.Embedding(n_words, n_units)
        self.embedded = nn.Dropout(embedding_dropout)
        n_first = 2 * n_units if input_feeding else n_units
        self.layers = nn.ModuleList(
            nn.LSTM(n_first if i == 0 else n_units, n_units, batch_first=True)
            for i in range(n_layers)
        )
        self.between = nn.ModuleList(nn.Dropout(dropout) for _ in range(n_layers - 1))
        self.query = nn.Linear(n_units, n_units, bias=False)
        self.join = nn.Linear(2 * n_units, n_units, bias=False)
        self.output = nn.Dropout(dropout)
        self.words = nn.Linear(n_units, n_words)
        if tied:
            self.words.weight = self.embedding.weight

    def forward(self, before: Tensor, memory: Memory) -> Tensor:
        """Map the words (B, T) before each word to logits (B, T, words)."""
        outputs, _, _ = self.run(before, memory, memory.start)
        logits: Tensor = self.words(outputs)
        return logits

    def run(self, before: Tensor, memory: Memory, state: State) -> tuple[Tensor, Tensor, State]:
        """Go on from a state: return o (B, T, H), attention (B, T, S), and the new state."""
        embedded = self.embedded(self.embedding(before))  # (B, T, H)
        source = self.project(memory)
        if self.input_feeding:
            return self._run_fed(embedded, source, state)
        last_h, last_c = [], []
        states = embedded
        for i, lstm in enumerate(self.layers):
            if i:
                states = self.between[i - 1](states)
            states, (h, c) = lstm(states, (state.h[i : i + 1], state.c[i : i + 1]))
            last_h.append(h)
            last_c.append(c)
        o, attention = self.attend(states, source)
        o = self.output(o)
        return o, attention, State(torch.cat(last_h), torch.cat(last_c), o[:, -1])

    def project(self, memory: Memory) -> Source:
        """Return what attention needs of sentences."""
        values = F.linear(memory.states, self.join.weight[:, : self.n_units])
        zeros = torch.zeros_like(memory.states[:, None, :, 0])
        padding = zeros.masked_fill(~memory.is_word[:, None], -torch.inf)
        return Source(memory.states @ self.query.weight, values, padding)

    def attend(self, states: Tensor, source: Source) -> tuple[Tensor, Tensor]:
        """Return o without dropout (B, T, H) and attention (B, T, S) for states (B, T, H)."""
        scores = source.padding + states @ source.keys.transpose(1, 2)
        attention = scores.softmax(2)
        of_states = F.linear(states, self.join.weight[:, self.n_units :])
        return torch.tanh(attention @ source.values + of_states), attention

    def _run_fed(
        self, embedded: Tensor, source: Source, state: State
    ) -> tuple[Tensor, Tensor, State]:
        """Take the words one by one; what sites do to ones, they do to every word."""
        ones = torch.ones_like(embedded[:, :1])  # (B, 1, H)
        factors = [site(ones)[:, 0] for site in (*self.between, self.output)]
        outputs, attention = [], []
        for word in embedded.split(1, 1):
            o, weights, state = self.step(word, source, state, factors)
            outputs.append(o)
            attention.append(weights)
        return torch.cat(outputs, 1), torch.cat(attention, 1), state

    def step(
        self, embedded: Tensor, source: Source, state: State, factors: Sequence[Tensor] = ()
    ) -> tuple[Tensor, Tensor, State]:
        """Go on by one word for each of K hypotheses of B sentences.

        Args:
            embedded: words (B, K, H).
            source: of the sentences.
            state: of the hypotheses (B K rows).
            factors: dropout of what is between layers, and of o (B K, H); by default none.

        Returns:
            o (B, K, H), attention (B, K, S), and the new state.
        """
        below = embedded.flatten(0, 1)
        if self.input_feeding:
            below = torch.cat([below, state.output], 1)
        h, c = [], []
        for i, lstm in enumerate(self.layers):
            if i and factors:
                below = below * factors[i - 1]
            weights: Any = lstm.all_weights
            below, cell = torch.lstm_cell(below, (state.h[i], state.c[i]), *weights[0])
            h.append(below)
            c.append(cell)
        o, attention = self.attend(below.unflatten(0, embedded.shape[:2]), source)
        if factors:
            o = o * factors[-1][:, None]
        return o, attention, State(torch.stack(h), torch.stack(c), o.flatten(0, 1))


class Seq2Seq(nn.Module):
    """Encoder and decoder.

    Args:
        n_source: words of the source language.
        n_target: words of the target language.
        n_units: of embeddings and of each layer.
        n_layers: of the encoder and of the decoder.
        bidirectional: half of the encoder's units read backwards.
        input_feeding: a decoder's step sees the attention's last output.
        dropout: Bernoulli rate between the layers and of o.
        embedding_dropout: Bernoulli rate of embeddings.
        tied: the decoder's embeddings are also its output weights.
    """

    def __init__(
        self,
        n_source: int,
        n_target: int,
        n_units: int,
        n_layers: int = 2,
        bidirectional: bool = False,
        input_feeding: bool = False,
        dropout: float = 0.3,
        embedding_dropout: float = 0.0,
        tied: bool = False,
    ) -> None:
        super().__init__()
        self.encoder = Encoder(
            n_source, n_units, n_layers, bidirectional, dropout, embedding_dropout
        )
        self.decoder = Decoder(
            n_target, n_units, n_layers, input_feeding, dropout, embedding_dropout, tied
        )
        for weight in self.parameters():
            nn.init.uniform_(weight, -INIT, INIT)

    def encode(self, x: tuple[Tensor, ...]) -> Memory:
        """Read the sentences of x: its first tensor (B, S)."""
        memory: Memory = self.encoder(x[0])
        return memory

    def decode(self, x: tuple[Tensor, ...], memory: Memory) -> Tensor:
        """Return logits for each word after those of x: its second tensor (B, T)."""
        logits: Tensor = self.decoder(x[1], memory)
        return logits

    def with_vector(self, n_vector: int) -> nn.Module:
        """Return this network, with a vector as second input: for an oracle."""
        from lupi_paper.translation.networks.vector_started import VectorStarted

        return VectorStarted(self, n_vector)

    def forward(self, x: tuple[Tensor, ...]) -> Tensor:
        """Map sentences and the words before each word of their translation to logits."""
        return self.decode(x, self.encode(x))
