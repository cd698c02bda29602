"""Beam search, batched over sentences and hypotheses.

A sentence's result does not depend on the others: it leaves the batch when it has as many finished
hypotheses as the beam is wide, or is `max_length` words long.
"""

from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from lupi.nn.networks.fed_steps import cell_
from lupi.nn.networks.seq2seq import Decoder, Memory, State, no_attention


class EncoderDecoder(Protocol):
    """A network that reads sentences and has a decoder."""

    @property
    def decoder(self) -> Decoder:
        """What writes a translation."""
        ...

    def encode(self, x: tuple[Tensor, ...]) -> Memory:
        """Read sentences."""
        ...


class Hypothesis(NamedTuple):
    """A translation."""

    words: list[int]
    """Without start and end."""
    seen: list[int]
    """For each word, the place in the padded source that attention saw most of, but its end."""
    score: float
    """Log-probability, divided by length ** length_norm."""


class _Beam:
    """The hypotheses of one sentence that have ended."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.best: Hypothesis | None = None
        self.n_finished = 0

    def add(self, hypothesis: Hypothesis) -> None:
        self.n_finished += 1
        if self.best is None or hypothesis.score > self.best.score:
            self.best = hypothesis

    @property
    def is_full(self) -> bool:
        return self.n_finished >= self.width


GROUP = 64
"""Words whose maximum is looked at before any of them is. Rows of logits are as long as a multiple
of it, with -inf at the end: products are slow where the rows of the result are not aligned."""


class _Writer:
    """A decoder and the sentences it translates, prepared for steps of one word.

    The projection of a word to the gates of the first layer is computed once for each word that
    occurs, and what attention needs of the sentences once for all hypotheses and steps. The
    biases of the output layer are weights of a one.
    """

    def __init__(self, decoder: Decoder, memory: Memory) -> None:
        self._decoder = decoder
        self._keys, self._values = decoder.project(memory)  # (N, S, H)
        self._padding = no_attention(memory)  # (N, 1, S)
        self._weights = [weight.t() for weight in decoder.step_weights()]
        self._biases = decoder.step_biases()
        self._join = decoder.join.weight[:, decoder.n_units :].t()
        self.n_words = n_words = decoder.embedding.num_embeddings
        every = torch.cat([decoder.words.weight, decoder.words.bias[:, None]], 1)
        padding = every.new_zeros(-n_words % GROUP, every.shape[1])
        padding[:, -1] = -torch.inf
        self._words = torch.cat([every, padding]).t().contiguous()  # (H + 1, V)
        self._gates = self._keys.new_empty(n_words, 4 * decoder.n_units)
        self._is_known = torch.zeros(n_words, dtype=torch.bool, device=self._keys.device)

    def step(self, words: Tensor, state: State) -> tuple[Tensor, Tensor, State]:
        """Read words (N, K): return logits (N K, V), attention (N, K, S) and the states."""
        below = state.output
        last_h, last_c = [], []
        for i, weight in enumerate(self._weights):
            base = self._biases[i - 1] if i else self._gates_of(words.flatten())
            has_input = i > 0 or self._decoder.input_feeding
            inputs = torch.cat([below, state.h[i]], 1) if has_input else state.h[i]
            below, c, _ = cell_(torch.addmm(base, inputs, weight), state.c[i])
            last_h.append(below)
            last_c.append(c)
        queries = below.view(*words.shape, -1)  # (N, K, H)
        scores = torch.baddbmm(self._padding, queries, self._keys.transpose(1, 2))
        attention = scores.softmax(2)  # (N, K, S)
        context = torch.bmm(attention, self._values).flatten(0, 1)
        o = torch.addmm(context, below, self._join).tanh_()  # (N K, H)
        logits = torch.cat([o, torch.ones_like(o[:, :1])], 1) @ self._words
        return logits, attention, State(torch.stack(last_h), torch.stack(last_c), o)

    def _gates_of(self, words: Tensor) -> Tensor:
        new = words[~self._is_known[words]].unique()
        if len(new):
            weight, bias = self._decoder.word_weights()
            embedded = self._decoder.embedding.weight[new]
            self._gates[new] = torch.addmm(bias, embedded, weight.t())
            self._is_known[new] = True
        return self._gates[words]

    def keep(self, sentences: Tensor) -> None:
        """Go on with some sentences."""
        self._keys, self._values = self._keys[sentences], self._values[sentences]
        self._padding = self._padding[sentences]


@torch.inference_mode()
def beam_search(
    net: EncoderDecoder,
    x: tuple[Tensor, ...],
    *,
    start: int,
    end: int,
    never: tuple[int, ...] = (),
    width: int = 12,
    length_norm: float = 1.0,
) -> list[Hypothesis]:
    """Return the best translation found of each sentence of x.

    Args:
        net: in `eval()`.
        x: sentences of one word or more and an end; only what `encode` reads is used.
        start: the word before the first.
        end: the word after the last.
        never: words that no translation has, such as padding.
        width: hypotheses of each sentence.
        length_norm: exponent of the length that scores are divided by; 0 prefers short ones.
    """
    memory = net.encode(x)
    n, device = len(memory.states), memory.states.device
    max_length = 2 * memory.is_word.sum(1) + 10  # (N,)
    beams = [_Beam(width) for _ in range(n)]
    alive = torch.arange(n, device=device)  # sentences still searched
    writer, state = _Writer(net.decoder, memory), memory.start
    # A sentence begins with one hypothesis, from which the others come.
    words = torch.full((n, 1, 1), start, device=device)
    seen = torch.zeros((n, 1, 0), dtype=torch.long, device=device)
    scores = memory.states.new_zeros(n, 1)

    length = 0
    while len(alive):
        length += 1
        n, n_before = scores.shape
        logits, attention, state = writer.step(words[:, :, -1], state)
        logprobs = logits.log_softmax(1)  # (N K, V)
        for forbidden in never:
            logprobs[:, forbidden] = -torch.inf
        n_words = logprobs.shape[1]
        looked = attention[..., :-1].argmax(2)  # (N, K)
        # The 2 K best continuations hold K that do not end.
        total, flat = _topk(logprobs.view(n, n_before, n_words), scores, 2 * width)  # (N, 2 K)
        parent, word = flat // n_words, flat % n_words
        word = word.clamp(max=writer.n_words - 1)  # where fewer than 2 K are possible
        ends = word == end
        last = length >= max_length[alive]

        # What ends among the K best is finished; where the length is used up, all of them.
        rank = torch.arange(total.shape[1], device=device)
        finished = (rank < width) & total.isfinite() & (ends | last[:, None])
        for i, j in finished.nonzero().tolist():
            source = int(parent[i, j])
            hypothesis = words[i, source, 1:].tolist()
            places = seen[i, source].tolist()
            if not ends[i, j]:
                hypothesis.append(int(word[i, j]))
                places.append(int(looked[i, source]))
            score = float(total[i, j]) / length**length_norm
            beams[int(alive[i])].add(Hypothesis(hypothesis, places, score))

        # Go on with the K best that do not end; a stable sort keeps their order.
        live = ends.to(torch.int8).sort(dim=1, stable=True).indices[:, :width]  # (N, K)
        full = torch.tensor([beams[i].is_full for i in alive.tolist()], device=device)
        going = (~(full | last)).nonzero()[:, 0]
        live, parent = live[going], parent[going].gather(1, live[going])  # (M, K)
        scores = total.masked_fill(ends, -torch.inf)[going].gather(1, live)
        word = word[going].gather(1, live)
        looked = looked[going].gather(1, parent)
        words = torch.cat([_of_parents(words[going], parent), word[..., None]], 2)
        seen = torch.cat([_of_parents(seen[going], parent), looked[..., None]], 2)
        state = state.rows((going[:, None] * n_before + parent).flatten())
        if len(going) < n:
            writer.keep(going)
        alive = alive[going]
    found = [beam.best for beam in beams]
    assert all(hypothesis is not None for hypothesis in found)
    return [hypothesis for hypothesis in found if hypothesis is not None]


def _topk(logprobs: Tensor, scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k largest sums of logprobs (N, K, V) and scores (N, K), and their places in K V.

    They are among the k groups of words with the largest maxima, so that few have to be sorted.
    """
    if logprobs.shape[2] < k * GROUP:
        total = (logprobs + scores[..., None]).flatten(1)
        return total.topk(min(k, total.shape[1]), dim=1)
    grouped = logprobs.unflatten(2, (-1, GROUP))  # (N, K, V / GROUP, GROUP)
    largest = (grouped.amax(3) + scores[..., None]).flatten(1)
    best = largest.topk(k, dim=1, sorted=False).indices  # (N, k)
    among = grouped.flatten(1, 2).gather(1, best[..., None].expand(-1, -1, GROUP))
    among = among + scores.gather(1, best // grouped.shape[2])[..., None]  # (N, k, GROUP)
    values, chosen = among.flatten(1).topk(k, dim=1)
    return values, best.gather(1, chosen // GROUP) * GROUP + chosen % GROUP


def _of_parents(history: Tensor, parent: Tensor) -> Tensor:
    """Return the history (M, K, t) of each hypothesis's parent (M, K)."""
    return history.gather(1, parent[..., None].expand(-1, -1, history.shape[2]))
