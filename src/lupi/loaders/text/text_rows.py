"""Texts in memory, and the padded batches made of them."""

from collections.abc import Iterator, Sequence

import torch
from torch import Generator, Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from lupi.core import Batch


def presence_features(x: Tensor, n_words: int) -> Tensor:
    """Return which words each text has, (N, n_words - 1), as rows of length 1.

    Args:
        x: word numbers (N, T) below `n_words`, 0 for none.
        n_words: numbers of words.
    """
    has_word = torch.zeros(len(x), n_words).scatter_(1, x, 1.0)[:, 1:]
    return nn.functional.normalize(has_word)


class TextSplit:
    """Rows of numbered words.

    Args:
        words: of each text, (T,) integers.
        y: targets, (N,).
        regions: of each text, how far each word belongs to the rationale, (T,); None for a
            split without x*.
        has_xstar: (N,) bool, which rows carry a rationale.
    """

    def __init__(
        self,
        words: Sequence[Tensor],
        y: Tensor,
        regions: Sequence[Tensor] | None = None,
        has_xstar: Tensor | None = None,
    ) -> None:
        self._words, self._y = words, y
        self._regions, self._has_xstar = regions, has_xstar

    def __len__(self) -> int:
        return len(self._y)

    def batches(self, batch_size: int, shuffle: Generator | None = None) -> Iterator[Batch]:
        """Yield all rows: in order, or shuffled by the generator.

        Words are padded on the right with 0 to the longest text of the batch, (B, T), and
        regions likewise, (B, 1, T).
        """
        n = len(self)
        order = torch.arange(n) if shuffle is None else torch.randperm(n, generator=shuffle)
        for chosen in torch.split(order, batch_size):
            rows = chosen.tolist()
            x = pad_sequence([self._words[i] for i in rows], batch_first=True)
            if self._regions is None or self._has_xstar is None:
                yield Batch(x, self._y[chosen])
                continue
            region = pad_sequence([self._regions[i] for i in rows], batch_first=True)
            yield Batch(x, self._y[chosen], region[:, None], self._has_xstar[chosen])
