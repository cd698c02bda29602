from pathlib import Path

import pytest

from lupi.errors import LupiError
from lupi_paper.translation.text.vocabulary import (
    UNKNOWN,
    Vocabulary,
    learn_pieces,
    learn_words,
    load_vocabulary,
)

LINES = ["the dog sees the cat", "the cat sees a tree", "Ein Müller läuft"] * 3


def test_frequent_words_come_first_and_rare_ones_are_unknown() -> None:
    words = learn_words([*LINES, "once"], min_count=2, max_size=3)
    assert len(words) == 4 + 3
    assert words.encode("the cat once saw") == [4, 5, UNKNOWN, UNKNOWN]
    assert words.decode([4, UNKNOWN]) == "the <unk>"
    assert words.decode([4, UNKNOWN], ["x", "Rex"]) == "the Rex"


def test_a_word_of_the_text_is_never_special() -> None:
    words = learn_words(["<s> </s> <pad> <unk>"] * 2, min_count=1, max_size=9)
    assert min(words.encode("<pad> <s> </s> <unk>")) >= 4
    assert words.decode(words.encode("<s> <pad>")) == "<s> <pad>"


@pytest.mark.parametrize("line", ["the cat sees a dog", "Müller läuft", ""])
def test_pieces_come_back_as_text(line: str) -> None:
    pieces = learn_pieces(LINES, size=60)
    assert pieces.decode(pieces.encode(line)) == line
    assert all(i >= 4 for i in pieces.encode(line))
    assert len(pieces.tokens(line)) == len(pieces.encode(line))


def test_unknown_characters_are_unknown_pieces() -> None:
    pieces = learn_pieces(LINES, size=60)
    ids = pieces.encode("cat 猫")
    assert UNKNOWN in ids
    assert pieces.decode(ids, pieces.tokens("cat 猫")) == "cat 猫"


@pytest.mark.parametrize("vocabulary", [learn_words(LINES, 1, 99), learn_pieces(LINES, 60)])
def test_a_vocabulary_is_kept_in_a_file(tmp_path: Path, vocabulary: Vocabulary) -> None:
    vocabulary.save(tmp_path, "source")
    again = load_vocabulary(tmp_path, "source")
    assert len(again) == len(vocabulary)
    assert again.encode(LINES[0]) == vocabulary.encode(LINES[0])
    with pytest.raises(LupiError, match="no target vocabulary that can be read"):
        load_vocabulary(tmp_path, "target")


def test_pieces_are_the_same_each_time() -> None:
    first, second = learn_pieces(LINES, 60), learn_pieces(LINES, 60)
    assert [first.encode(line) for line in LINES] == [second.encode(line) for line in LINES]
