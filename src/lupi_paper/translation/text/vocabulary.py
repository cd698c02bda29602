"""Vocabularies of words: from lines to numbers and back.

They are learned from training text only and saved with a run, so that a student can translate
without its training data.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from lupi.errors import LupiError
from lupi.files import write_text
from lupi.limits import read_regular

PAD, UNKNOWN, START, END = range(4)
SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")

Side = Literal["source", "target"]


class Vocabulary:
    """Numbers for the words of a language, separated by spaces; the first four are special."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = [*SPECIAL, *words]
        self._ids = {word: i for i, word in enumerate(self._words) if i >= len(SPECIAL)}

    @classmethod
    def learn(cls, lines: Sequence[str], min_count: int, max_size: int) -> "Vocabulary":
        """Return a vocabulary of the most frequent words with at least `min_count` occurrences."""
        counts = Counter(word for line in lines for word in line.split())
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        return cls([word for word, count in ranked if count >= min_count][:max_size])

    @classmethod
    def load(cls, folder: Path, side: Side) -> "Vocabulary":
        """Read a vocabulary written by `save`."""
        try:
            return cls(read_regular(_file(folder, side)).decode("utf-8").split("\n")[:-1])
        except (OSError, UnicodeDecodeError) as error:
            raise LupiError(
                f"{folder} has no {side} vocabulary that can be read: {error}"
            ) from None

    def save(self, folder: Path, side: Side) -> None:
        """Write one word on each line of a file."""
        words = self._words[len(SPECIAL) :]
        write_text(_file(folder, side), "".join(f"{word}\n" for word in words))

    def __len__(self) -> int:
        return len(self._words)

    def encode(self, line: str) -> list[int]:
        """Return the numbers of a line's words, without start and end."""
        return [self._ids.get(word, UNKNOWN) for word in line.split()]

    def decode(self, ids: Sequence[int], instead: Sequence[str] | None = None) -> str:
        """Return a line; unknown words are replaced by those in `instead`."""
        words = [self._words[i] for i in ids]
        if instead is not None:
            words = [
                other if i == UNKNOWN else word
                for i, word, other in zip(ids, words, instead, strict=True)
            ]
        return " ".join(words)


def _file(folder: Path, side: Side) -> Path:
    return folder / f"{side}.words.txt"
