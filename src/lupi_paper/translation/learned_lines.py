"""Vocabularies and vectors, learned from the training lines of a run alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lupi_paper.translation.settings import TranslationSettings
from lupi_paper.translation.text.parallel_text import Pairs
from lupi_paper.translation.text.sentence_vectors import FittedVectors, VectorFiles
from lupi_paper.translation.text.sentences import Ids
from lupi_paper.translation.text.vocabulary import Vocabulary, learn_pieces, learn_words

Part = Literal["train", "val", "test"]
Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LearnedLines:
    """Lines of all parts as numbers of words, and vectors of the training lines."""

    source: Vocabulary
    target: Vocabulary
    ids: Mapping[Part, tuple[list[Ids], list[Ids]]]
    """Source and target; of `train` those of the run's lines."""
    vectors: FittedVectors | None


def learn_lines(
    pairs: Mapping[Part, Pairs],
    rows: Rows,
    settings: TranslationSettings,
    vectors: VectorFiles | None,
) -> LearnedLines:
    """Learn vocabularies, and how x* becomes vectors, from some training lines."""
    train = pairs["train"]
    lines: dict[Part, tuple[list[str], list[str]]] = {
        "train": ([train.source[i] for i in rows], [train.target[i] for i in rows]),
        "val": (pairs["val"].source, pairs["val"].target),
        "test": (pairs["test"].source, pairs["test"].target),
    }
    source, target = (_learn(text, settings) for text in lines["train"])
    ids: dict[Part, tuple[list[Ids], list[Ids]]] = {
        part: ([source.encode(line) for line in text], [target.encode(line) for line in translated])
        for part, (text, translated) in lines.items()
    }
    return LearnedLines(source, target, ids, vectors.fit(rows) if vectors else None)


def _learn(lines: list[str], settings: TranslationSettings) -> Vocabulary:
    if settings.vocabulary == "pieces":
        return learn_pieces(lines, settings.vocabulary_size)
    return learn_words(lines, settings.min_count, settings.vocabulary_size)
