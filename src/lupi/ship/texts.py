"""Convert texts (strings, files, lines) to x."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lupi.errors import LupiError
from lupi.loaders.files import SUFFIXES, read_lines, read_rows, resolve, suffix_of
from lupi.loaders.text.exports import TEXT, find_tool, read_export
from lupi.loaders.text.texts import as_text, remove_tags
from lupi.loaders.text.tokens import split_words
from lupi.loaders.text.word_vocabulary import WordVocabulary
from lupi.ship.description import Description, Encoded, TextFiles
from lupi.ship.manifest import TOKENIZER

if TYPE_CHECKING:
    from lupi.networks.text_backbones import WordPieces

ONE_PER_LINE = (".txt", "")
"""Suffixes of files with one text per line and no columns, like stdin."""


def find_pieces(description: Description, folder: Path) -> "WordPieces | None":
    """Return the tokenizer of a student on a pretrained text encoder; None for others.

    Args:
        description: Of the student.
        folder: Its exported folder, which has the tokenizer, or that of its run.
    """
    if description.texts is None or description.backbone is None:
        return None
    from lupi.networks.text_backbones import WordPieces, find_text_backbone

    source = description.backbone.source
    if (folder / TOKENIZER).exists():
        return WordPieces.read(folder / TOKENIZER, source.config or {})
    return find_text_backbone(source).pieces


class TextEncoder:
    """Converts texts to word indices (B, T) or pieces of words, as for the training texts."""

    def __init__(self, how: TextFiles, pieces: "WordPieces | None" = None) -> None:
        self._how, self._pieces = how, pieces
        self._vocabulary = WordVocabulary(how.words)

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

    def read(self, path: Path, batch_size: int) -> Iterator[Encoded]:
        """Read a file like the training texts, an annotation tool's, or one text per line."""
        if (tool := find_tool(path)) is not None:
            rows, column = read_export(path, tool), TEXT
        elif path.suffix.lower() in ONE_PER_LINE or suffix_of(path) not in SUFFIXES:
            lines = read_lines(path, self._how.encoding)
            yield from self.read_lines(lines, str(path), batch_size)
            return
        else:
            column = self._how.column
            rows = read_rows(path, [column], dialect=resolve(path, self._how.dialect, [column]))
        texts = ((row.number, as_text(row.cells.get(column))) for row in rows)
        while chunk := list(islice(texts, batch_size)):
            yield self._encoded(chunk)

    def read_lines(self, lines: Iterable[str], where: str, batch_size: int) -> Iterator[Encoded]:
        """Read one text per line, as lines arrive."""
        numbered = ((number, as_text(line)) for number, line in enumerate(lines, start=1))
        texts = ((number, text) for number, text in numbered if text is not None)  # no empty lines
        try:
            while chunk := list(islice(texts, batch_size)):
                yield self._encoded(chunk)
        except UnicodeDecodeError:
            raise LupiError(f"{where} is not {self._how.encoding} text; save it as such") from None

    def _encoded(self, texts: Sequence[tuple[int, str | None]]) -> Encoded:
        shown, numbers, bad = [], [], []
        for number, text in texts:
            words = split_words(remove_tags(text or "", self._how.tags))
            if not words:
                bad.append((number, "it contains no words"))
                continue
            shown.append(words[: self._how.max_length])
            numbers.append(number)
        if self._pieces is not None:
            return Encoded(numbers, self._pieces(shown).numpy(), bad)
        return Encoded(numbers, _padded([self._vocabulary.encode(w) for w in shown]), bad)


def _padded(texts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return texts (T,) of any length as one array (B, T), with zeros at their ends."""
    if not texts:
        return np.empty((0, 1), dtype=np.int64)
    padded = np.zeros((len(texts), max(map(len, texts))), dtype=np.int64)
    for row, text in zip(padded, texts, strict=True):
        row[: len(text)] = text
    return padded
