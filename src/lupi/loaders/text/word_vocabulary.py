"""The vocabulary of a network, built from the training rows of its run."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lupi.errors import LupiError

ABSENT = 0
"""The number of padding, and of words that the network does not know: no word here."""


class WordVocabulary:
    """Words 1, 2, …, those of the most training texts first."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = tuple(words)
        self._numbers = {word: number for number, word in enumerate(words, start=1)}
        if len(self._numbers) < len(self.words):
            raise LupiError("the vocabulary of this student has a duplicate word")

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, words: Sequence[str]) -> NDArray[np.int64]:
        """Return the numbers of words, `ABSENT` for unknown ones; at least one."""
        numbers = [self._numbers.get(word, ABSENT) for word in words]
        return np.array(numbers or [ABSENT], dtype=np.int64)


def choose_words(
    texts: Sequence[NDArray[np.int32]], n_lexemes: int, min_count: int, max_words: int
) -> NDArray[np.int64]:
    """Return the lexemes that stand in most texts, most frequent first.

    Args:
        texts: lexemes of each training text.
        n_lexemes: number of distinct lexemes that there may be.
        min_count: texts that a word has to stand in.
        max_words: of those, the most frequent.
    """
    counts = np.zeros(n_lexemes, dtype=np.int64)
    for text in texts:
        counts[np.unique(text)] += 1
    order = np.argsort(-counts, kind="stable")[:max_words]
    chosen = order[counts[order] >= min_count]
    if not len(chosen):
        raise LupiError(f"min_count: no word occurs in {min_count} of the {len(texts)} texts")
    return chosen.astype(np.int64)
