"""Vocabularies: from lines to token indices and back, by words or by sentencepiece.

Both are learned from training text only and saved with a run, so that a student can translate
without its training data.
"""

import io
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

from lupi.errors import LupiError
from lupi.files import write_text, write_whole
from lupi.limits import read_regular

PAD, UNKNOWN, START, END = range(4)
SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")

Side = Literal["source", "target"]


class Vocabulary(Protocol):
    """Numbers for the tokens of one language; the first four are special."""

    def __len__(self) -> int: ...

    @abstractmethod
    def tokens(self, line: str) -> list[str]:
        """Split a line into tokens."""

    @abstractmethod
    def encode(self, line: str) -> list[int]:
        """Return the numbers of a line's tokens, without start and end."""

    @abstractmethod
    def decode(self, ids: Sequence[int], instead: Sequence[str] | None = None) -> str:
        """Return a line; unknown tokens are replaced by those in `instead`."""

    @abstractmethod
    def save(self, folder: Path, side: Side) -> None:
        """Write the vocabulary to a file."""


class Words(Vocabulary):
    """Tokens are separated by spaces."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = [*SPECIAL, *words]
        self._ids = {word: i for i, word in enumerate(self._words) if i >= len(SPECIAL)}

    def __len__(self) -> int:
        return len(self._words)

    def tokens(self, line: str) -> list[str]:
        """Split at spaces."""
        return line.split()

    def encode(self, line: str) -> list[int]:
        """Return the numbers of the words."""
        return [self._ids.get(word, UNKNOWN) for word in self.tokens(line)]

    def decode(self, ids: Sequence[int], instead: Sequence[str] | None = None) -> str:
        """Join the words."""
        words = [self._words[i] for i in ids]
        if instead is not None:
            words = [
                other if i == UNKNOWN else word
                for i, word, other in zip(ids, words, instead, strict=True)
            ]
        return " ".join(words)

    def save(self, folder: Path, side: Side) -> None:
        """Write one word on each line."""
        text = "".join(f"{word}\n" for word in self._words[len(SPECIAL) :])
        write_text(folder / f"{side}.words.txt", text)


def learn_words(lines: Sequence[str], min_count: int, max_size: int) -> Words:
    """Return a vocabulary of the most frequent words with at least `min_count` occurrences."""
    counts = Counter(word for line in lines for word in line.split())
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return Words([word for word, count in ranked if count >= min_count][:max_size])


class Pieces(Vocabulary):
    """Tokens are sentencepiece's: parts of words, so that few are unknown."""

    def __init__(self, model: bytes) -> None:
        import sentencepiece

        self._model = model
        self._processor: Any = sentencepiece.SentencePieceProcessor(model_proto=model)

    def __len__(self) -> int:
        return int(self._processor.GetPieceSize())

    def tokens(self, line: str) -> list[str]:
        """Split into pieces."""
        pieces: list[str] = self._processor.EncodeAsPieces(line)
        return pieces

    def encode(self, line: str) -> list[int]:
        """Return the numbers of the pieces."""
        ids: list[int] = self._processor.EncodeAsIds(line)
        return ids

    def decode(self, ids: Sequence[int], instead: Sequence[str] | None = None) -> str:
        """Join the pieces."""
        if instead is None:
            return str(self._processor.DecodeIds(list(ids)))
        pieces = [
            other if i == UNKNOWN else self._processor.IdToPiece(i)
            for i, other in zip(ids, instead, strict=True)
        ]
        return str(self._processor.DecodePieces(pieces))

    def save(self, folder: Path, side: Side) -> None:
        """Write the model as sentencepiece does."""

        def write(temporary: Path) -> None:
            temporary.write_bytes(self._model)

        write_whole(folder / f"{side}.pieces.model", write)


def learn_pieces(lines: Sequence[str], size: int) -> Pieces:
    """Learn byte-pair pieces; fewer than `size` if the text is too small."""
    import sentencepiece

    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.Train(
            sentence_iterator=iter(lines),
            model_writer=model,
            model_type="bpe",
            vocab_size=size,
            hard_vocab_limit=False,
            character_coverage=1.0,
            pad_id=PAD,
            unk_id=UNKNOWN,
            bos_id=START,
            eos_id=END,
            num_threads=1,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise LupiError(
            f"task.vocabulary_size: sentencepiece can't learn {size} pieces: {error}"
        ) from None
    return Pieces(model.getvalue())


def load_vocabulary(folder: Path, side: Side) -> Vocabulary:
    """Read a vocabulary written by `save`."""
    words, pieces = folder / f"{side}.words.txt", folder / f"{side}.pieces.model"
    try:
        if not pieces.exists():
            return Words(read_regular(words).decode("utf-8").split("\n")[:-1])
        vocabulary = Pieces(read_regular(pieces))
    except (OSError, UnicodeDecodeError, RuntimeError) as error:
        raise LupiError(f"{folder} has no {side} vocabulary that can be read: {error}") from None
    if len(vocabulary) <= len(SPECIAL):
        raise LupiError(f"{folder} has no {side} vocabulary that can be read: {pieces} is empty")
    return vocabulary
