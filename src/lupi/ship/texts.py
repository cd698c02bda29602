"""Convert texts (strings, files, lines) to x."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lupi.errors import LupiError
from lupi.loaders.files import SUFFIXES, read_lines, read_rows, resolve, suffix_of
from lupi.loaders.text.texts import as_text, remove_tags
from lupi.loaders.text.tokens import split_words
from lupi.loaders.text.word_vocabulary import WordVocabulary
from lupi.ship.description import PretrainedPart, TextFiles

ONE_PER_LINE = (".txt", "")
"""Suffixes of files with one text per line and no columns, like stdin."""


class EncodedTexts(NamedTuple):
    """A batch of texts of a file."""

    numbers: list[int]
    """Numbers of the valid texts, from 1."""
    x: NDArray[Any]
    """Word numbers (B, T), or vectors of words (B, T, C)."""
    bad: list[tuple[int, str]]
    """Number and error of each invalid text."""


class TextEncoder:
    """Converts texts to word indices (B, T), as for the training texts."""

    def __init__(self, how: TextFiles, pretrained: PretrainedPart | None = None) -> None:
        self._how = how
        self._vocabulary = WordVocabulary(how.words)
        self._backbone = None
        if pretrained is not None:
            from lupi.networks.text_backbones import find_text_backbone

            self._backbone = find_text_backbone(pretrained.source)

    def encode(self, texts: Any) -> NDArray[Any]:
        """Return x of texts; an empty one is an error."""
        is_list = isinstance(texts, Sequence) and not isinstance(texts, str) and len(texts)
        if not is_list or not all(isinstance(text, str) for text in texts):
            raise LupiError(
                f"this student predicts texts: expected a list of strings, got {texts!r}"
            )
        numbered = enumerate(texts, start=1)
        _, x, bad = self._encoded([(number, as_text(text)) for number, text in numbered])
        if bad:
            raise LupiError(f"text {bad[0][0]}: {bad[0][1]}")
        return x

    def read(self, path: Path, batch_size: int) -> Iterator[EncodedTexts]:
        """Read a file like the training texts, or one text per line (.txt)."""
        if path.suffix.lower() in ONE_PER_LINE or suffix_of(path) not in SUFFIXES:
            lines = read_lines(path, self._how.encoding)
            yield from self.read_lines(lines, str(path), batch_size)
            return
        how = resolve(path, self._how.dialect, [self._how.column])
        rows = read_rows(path, [self._how.column], dialect=how)
        texts = ((row.number, as_text(row.cells.get(self._how.column))) for row in rows)
        while chunk := list(islice(texts, batch_size)):
            yield self._encoded(chunk)

    def read_lines(
        self, lines: Iterable[str], where: str, batch_size: int
    ) -> Iterator[EncodedTexts]:
        """Read one text per line, as lines arrive."""
        numbered = ((number, as_text(line)) for number, line in enumerate(lines, start=1))
        texts = ((number, text) for number, text in numbered if text is not None)  # no empty lines
        try:
            while chunk := list(islice(texts, batch_size)):
                yield self._encoded(chunk)
        except UnicodeDecodeError:
            raise LupiError(f"{where} is not {self._how.encoding} text; save it as such") from None

    def _encoded(self, texts: Sequence[tuple[int, str | None]]) -> EncodedTexts:
        encoded, numbers, bad = [], [], []
        for number, text in texts:
            words = split_words(remove_tags(text or "", self._how.tags))
            if not words:
                bad.append((number, "it contains no words"))
                continue
            encoded.append(self._encode(words[: self._how.max_length]))
            numbers.append(number)
        return EncodedTexts(numbers, _padded(encoded), bad)

    def _encode(self, words: list[str]) -> NDArray[Any]:
        """Return the numbers of words, (T,), or their vectors, (T, C)."""
        if self._backbone is None:
            return self._vocabulary.encode(words)
        return self._backbone.encode([words])[0].numpy()


def _padded(texts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return texts (T, ...) of any length as one array (B, T, ...), with zeros at their ends."""
    if not texts:
        return np.empty((0, 1), dtype=np.int64)
    shape = (len(texts), max(map(len, texts)), *texts[0].shape[1:])
    padded = np.zeros(shape, dtype=texts[0].dtype)
    for row, text in zip(padded, texts, strict=True):
        row[: len(text)] = text
    return padded
