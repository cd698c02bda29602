"""Beam search, batched over sentences and hypotheses.

A sentence's result does not depend on the others: it leaves the batch when it has as many finished
hypotheses as the beam is wide, or is `max_length` words long.
"""

from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from lupi.nn.networks.seq2seq import Decoder, Memory


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


@torch.no_grad()
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
    memory = memory.rows(alive.repeat_interleave(width))  # (N K, ...)
    state = memory.start
    words = torch.full((n, width, 1), start, device=device)
    seen = torch.zeros((n, width, 0), dtype=torch.long, device=device)
    scores = torch.full((n, width), -torch.inf, device=device)
    scores[:, 0] = 0.0  # all hypotheses are the same: one of them counts
    forbidden = torch.tensor(never, dtype=torch.long, device=device)

    length = 0
    while len(alive):
        length += 1
        n = len(alive)
        outputs, attention, state = net.decoder.run(words[:, :, -1].view(-1, 1), memory, state)
        logprobs = net.decoder.words(outputs[:, 0]).log_softmax(1)  # (N K, V)
        logprobs[:, forbidden] = -torch.inf
        n_words = logprobs.shape[1]
        looked = attention[:, 0, :-1].argmax(1).view(n, width)
        # The 2 K best continuations hold K that do not end.
        total = (scores[:, :, None] + logprobs.view(n, width, n_words)).view(n, -1)
        total, flat = total.topk(min(2 * width, total.shape[1]), dim=1)  # (N, 2 K)
        parent, word = flat // n_words, flat % n_words
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
        scores = total[going].gather(1, live)
        word = word[going].gather(1, live)
        looked = looked[going].gather(1, parent)
        words = torch.cat([_of_parents(words[going], parent), word[..., None]], 2)
        seen = torch.cat([_of_parents(seen[going], parent), looked[..., None]], 2)
        rows = going[:, None] * width  # (M, 1) in (N K)
        state = state.rows((rows + parent).flatten())
        if len(going) < n:
            memory = memory.rows((rows + torch.arange(width, device=device)).flatten())
        alive = alive[going]
    found = [beam.best for beam in beams]
    assert all(hypothesis is not None for hypothesis in found)
    return [hypothesis for hypothesis in found if hypothesis is not None]


def _of_parents(history: Tensor, parent: Tensor) -> Tensor:
    """Return the history (M, K, t) of each hypothesis's parent (M, K)."""
    return history.gather(1, parent[..., None].expand(-1, -1, history.shape[2]))
