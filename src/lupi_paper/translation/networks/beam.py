"""Beam search, batched over sentences and hypotheses.

A sentence's result does not depend on the others: it leaves the batch when it has as many finished
hypotheses as the beam is wide, or is `max_length` words long.
"""

from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from lupi_paper.translation.networks.seq2seq import Decoder, Memory


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


class _Ended(NamedTuple):
    """A hypothesis that has ended."""

    score: float
    length: int
    """Steps taken."""
    parent: int
    """Its place among the hypotheses before the last step."""
    word: int
    seen: int


class _History:
    """The words of all hypotheses: those of a step follow from those of the step before."""

    def __init__(self) -> None:
        self._steps: list[tuple[Tensor, Tensor, Tensor]] = []

    def add(self, parents: Tensor, words: Tensor, seen: Tensor) -> None:
        """Note of each hypothesis (M,) its place before the step, its word and its attention."""
        self._steps.append((parents, words, seen))

    def read(self, ended: list[_Ended], end: int) -> list[Hypothesis]:
        """Return the translations that hypotheses have found."""
        steps = [[column.tolist() for column in step] for step in self._steps]
        return [self._follow(steps, hypothesis, end) for hypothesis in ended]

    def _follow(self, steps: list[list[list[int]]], ended: _Ended, end: int) -> Hypothesis:
        backwards = [] if ended.word == end else [(ended.word, ended.seen)]
        place = ended.parent
        for parents, words, seen in reversed(steps[: ended.length - 1]):
            backwards.append((words[place], seen[place]))
            place = parents[place]
        path = backwards[::-1]
        return Hypothesis([word for word, _ in path], [at for _, at in path], ended.score)


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
    best: dict[int, _Ended] = {}
    n_ended = torch.zeros(n, dtype=torch.long, device=device)
    alive = torch.arange(n, device=device)  # sentences still searched
    decoder, history = net.decoder, _History()
    source, state = decoder.project(memory), memory.start
    # A sentence begins with one hypothesis, from which the others come.
    words = torch.full((n, 1), start, device=device)
    scores = memory.states.new_zeros(n, 1)

    length = 0
    while len(alive):
        length += 1
        o, attention, state = decoder.step(decoder.embedding(words), source, state)
        seen = attention[..., :-1].argmax(2).flatten()  # (N K,)
        # The 2 K best continuations hold K that do not end.
        total, parent, word = _best_words(decoder.words(o), scores, never, 2 * width)  # (N, 2 K)
        ends = word == end
        last = length >= max_length[alive]

        # What ends among the K best is finished; where the length is used up, all of them.
        finished = total.isfinite() & (ends | last[:, None])
        finished[:, width:] = False
        row, rank = finished.nonzero(as_tuple=True)
        if len(row):
            sentences, places = alive[row], parent[row, rank]
            n_ended += sentences.bincount(minlength=len(n_ended))
            columns = (sentences, total[row, rank], places, word[row, rank], seen[places])
            for i, logprob, *at in zip(*(column.tolist() for column in columns), strict=True):
                score = logprob / length**length_norm
                if i not in best or score > best[i].score:
                    best[i] = _Ended(score, length, *at)

        # Go on with the K best that do not end; a stable sort keeps their order.
        going = ((n_ended[alive] < width) & ~last).nonzero()[:, 0]
        live = ends[going].to(torch.int8).sort(dim=1, stable=True).indices[:, :width]  # (M, K)
        scores = total.masked_fill(ends, -torch.inf)[going].gather(1, live)
        words = word[going].gather(1, live)
        parents = parent[going].gather(1, live).flatten()
        history.add(parents, words.flatten(), seen[parents])
        source, state = source.rows(going), state.rows(parents)
        alive = alive[going]
    return history.read([best[i] for i in range(len(n_ended))], end)


def _best_words(
    logits: Tensor, scores: Tensor, never: tuple[int, ...], k: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the k best continuations of each sentence's hypotheses, best first.

    Args:
        logits: of the words after each hypothesis (N, K, V).
        scores: log-probabilities of the hypotheses (N, K).
        never: words that no translation has.
        k: number of continuations; where there are fewer, fewer are returned.

    Returns:
        Log-probabilities, places of hypotheses in N K, and words, each (N, k).
    """
    n, width, n_words = logits.shape
    logprobs = logits.log_softmax(2)
    logprobs[..., list(never)] = -torch.inf
    total = (scores[..., None] + logprobs).flatten(1)  # (N, K V)
    best, at = total.topk(min(k, total.shape[1]), dim=1)
    first = torch.arange(0, n * width, width, device=at.device)[:, None]
    return best, first + at // n_words, at % n_words
