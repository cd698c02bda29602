"""A recurrent encoder and decoder with attention: the student for translation.

    a_t = softmax over s of (h_t W m_s),   c_t = sum over s of a_ts m_s,   o_t = tanh(V [c_t; h_t])

m are the states of the encoder's last layer, h those of the decoder's. Luong, Pham, Manning:
"Effective Approaches to Attention-based Neural Machine Translation", EMNLP 2015 (`general`).

Sources are padded on the left. The encoder's layers have no bias of their own; instead a one is
appended to their input, a zero where there is padding. So their states stay exactly zero up to the
first word, their last states are those of the last word, and no sequence has to be packed.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

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
        place = _reversed_places(is_word)[..., None]  # (B, S, 1)
        reverse, (h_back, c_back) = self.backwards(inputs.gather(1, place.expand_as(inputs)))
        reverse = reverse.gather(1, place.expand_as(reverse))
        return (
            torch.cat([states, reverse], 2),
            torch.cat([h, h_back], 2),
            torch.cat([c, c_back], 2),
        )


def _reversed_places(is_word: Tensor) -> Tensor:
    """Return for each place (B, S) the one that stands there when the words are reversed."""
    place = torch.arange(is_word.shape[1], device=is_word.device).expand_as(is_word)
    n_padding = (~is_word).sum(1, keepdim=True)
    last = is_word.shape[1] - 1
    return torch.where(is_word, last + n_padding - place, place)


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
        self.input_feeding = input_feeding
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
        if not self.input_feeding:
            return self._pass(embedded, memory, state, list(self.between), self.output)
        ones = torch.ones_like(embedded[:, :1])  # (B, 1, H)
        between = [_Times(site(ones)) for site in self.between]
        output = _Times(self.output(ones))
        outputs, attentions = [], []
        for word in embedded.split(1, dim=1):
            fed = torch.cat([word, state.output[:, None]], 2)  # (B, 1, 2 H)
            o, attention, state = self._pass(fed, memory, state, between, output)
            outputs.append(o)
            attentions.append(attention)
        return torch.cat(outputs, 1), torch.cat(attentions, 1), state

    def _pass(
        self,
        inputs: Tensor,
        memory: Memory,
        state: State,
        between: "list[nn.Module] | list[_Times]",
        output: "nn.Module | _Times",
    ) -> tuple[Tensor, Tensor, State]:
        last_h, last_c = [], []
        states = inputs
        for i, lstm in enumerate(self.layers):
            if i:
                states = between[i - 1](states)
            states, (h, c) = lstm(states, (state.h[i : i + 1], state.c[i : i + 1]))
            last_h.append(h)
            last_c.append(c)
        scores = self.query(states) @ memory.states.transpose(1, 2)  # (B, T, S)
        attention = scores.masked_fill(~memory.is_word[:, None], -torch.inf).softmax(2)
        context = attention @ memory.states  # (B, T, H)
        o = output(torch.tanh(self.join(torch.cat([context, states], 2))))
        return o, attention, State(torch.cat(last_h), torch.cat(last_c), o[:, -1])


class _Times:
    """A site that has done its work: the factors (B, 1, H) that it multiplies with."""

    def __init__(self, factors: Tensor) -> None:
        self._factors = factors

    def __call__(self, h: Tensor) -> Tensor:
        return h * self._factors


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

    def forward(self, x: tuple[Tensor, ...]) -> Tensor:
        """Map sentences and the words before each word of their translation to logits."""
        return self.decode(x, self.encode(x))


class VectorStarted(nn.Module):
    """A translator whose decoder's first state a vector changes: h_0 + W v.

    After IMG_D of Calixto, Liu, Campbell: "Incorporating Global Visual Features into
    Attention-Based Neural Machine Translation", EMNLP 2017. It sees (source, before, v, has): rows
    whose `has` is False start as without a vector.
    """

    def __init__(self, net: Seq2Seq, n_vector: int) -> None:
        super().__init__()
        self.net = net
        self.n_layers = len(net.decoder.layers)
        self.start = nn.Linear(n_vector, self.n_layers * net.decoder.embedding.embedding_dim)

    @property
    def decoder(self) -> Decoder:
        """What writes."""
        return self.net.decoder

    def encode(self, x: tuple[Tensor, ...]) -> Memory:
        """Read sentences and vectors."""
        vector, has = x[2:]
        memory = self.net.encode(x)
        change = self.start(vector) * has[:, None]  # (B, L H)
        change = change.unflatten(1, (self.n_layers, -1)).transpose(0, 1)  # (L, B, H)
        return memory._replace(start=memory.start._replace(h=memory.start.h + change))

    def forward(self, x: tuple[Tensor, ...]) -> Tensor:
        """Map sentences, the words before each word, and vectors to logits."""
        return self.net.decode(x, self.encode(x))
