"""Batches of sentence pairs with similar numbers of tokens, of similar length when shuffled."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from lupi.core import Batch
from lupi_paper.translation.text.vocabulary import END, PAD, START

Ids = Sequence[int]


class Sentences(NamedTuple):
    """What a translator sees: a sentence, and in training the translation up to each word."""

    source: Tensor
    """(B, S) tokens, padded on the left: a recurrent network ends with the sentence"""
    before: Tensor
    """(B, T): the start, then the target's tokens but the last, padded on the right. A search
    begins with the start alone."""


def sources(sentences: Sequence[Ids]) -> Tensor:
    """Return (B, S), each sentence with an end, so that even an empty one has a token."""
    longest = max(map(len, sentences)) + 1
    rows = [[PAD] * (longest - len(ids) - 1) + [*ids, END] for ids in sentences]
    return torch.tensor(rows)


def to_translate(sentences: Sequence[Ids]) -> Sentences:
    """Return sentences whose translation is not known."""
    return Sentences(sources(sentences), torch.full((len(sentences), 1), START))


def to_learn(source: Sequence[Ids], target: Sequence[Ids]) -> tuple[Sentences, Tensor]:
    """Return sentences with what comes before each target word, and the words (B, T)."""
    longest = max(map(len, target)) + 1
    padding = [[PAD] * (longest - len(ids) - 1) for ids in target]
    before = [[START, *ids, *pad] for ids, pad in zip(target, padding, strict=True)]
    words = [[*ids, END, *pad] for ids, pad in zip(target, padding, strict=True)]
    return Sentences(sources(source), torch.tensor(before)), torch.tensor(words)


class SentenceSplit:
    """Rows of sentence pairs.

    Args:
        source: tokens of each sentence.
        target: tokens of each translation.
        xstar: (N, D), or None for a split without x*.
        has_xstar: whether each row has x* (N,).
    """

    def __init__(
        self,
        source: Sequence[Ids],
        target: Sequence[Ids],
        xstar: NDArray[np.float32] | None = None,
        has_xstar: NDArray[np.bool_] | None = None,
    ) -> None:
        self.source, self.target = source, target
        self.xstar = None if xstar is None else torch.from_numpy(xstar)
        self.has_xstar = None if has_xstar is None else torch.from_numpy(has_xstar)
        pairs = zip(source, target, strict=True)
        self._lengths = np.array([max(len(s), len(t)) + 1 for s, t in pairs])

    def __len__(self) -> int:
        return len(self.source)

    def batches(self, batch_size: int, shuffle: Generator | None = None) -> Iterator[Batch]:
        """Yield all rows in batches that hold as many tokens as `batch_size` average rows.

        Shuffled ones have sentences of like length, in an order drawn anew each time.
        """
        budget = int(np.ceil(batch_size * self._lengths.mean()))
        if shuffle is None:
            yield from map(self._batch, self._cut(np.arange(len(self)), budget))
            return
        order = torch.randperm(len(self), generator=shuffle).numpy()
        order = order[np.argsort(self._lengths[order], kind="stable")]
        cut = list(self._cut(order, budget))
        for i in torch.randperm(len(cut), generator=shuffle).tolist():
            yield self._batch(cut[i])

    def sort(self) -> tuple["SentenceSplit", Tensor]:
        """Return the rows by length, and for each row of this split its place there (N,)."""
        order = np.argsort(self._lengths, kind="stable")
        rows = SentenceSplit(
            [self.source[i] for i in order],
            [self.target[i] for i in order],
            None if self.xstar is None else self.xstar.numpy()[order],
            None if self.has_xstar is None else self.has_xstar.numpy()[order],
        )
        return rows, torch.from_numpy(np.argsort(order))

    def _cut(self, order: NDArray[np.int64], budget: int) -> Iterator[NDArray[np.int64]]:
        """Split an order of rows into batches within the budget of padded tokens."""
        start = longest = 0
        for i, length in enumerate(self._lengths[order].tolist()):
            longest = max(longest, length)
            if i > start and (i + 1 - start) * longest > budget:
                yield order[start:i]
                start, longest = i, length
        yield order[start:]

    def _batch(self, rows: NDArray[np.int64]) -> Batch:
        x, y = to_learn([self.source[i] for i in rows], [self.target[i] for i in rows])
        n_targets = int((y != PAD).sum())
        if self.xstar is None or self.has_xstar is None:
            return Batch(x, y, n_targets=n_targets)
        return Batch(x, y, self.xstar[rows], self.has_xstar[rows], n_targets)
