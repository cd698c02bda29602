from pathlib import Path

import pytest

from lupi.errors import LupiError
from lupi_paper.translation.text.vocabulary import UNKNOWN, Vocabulary

LINES = ["the dog sees the cat", "the cat sees a tree", "Ein Müller läuft"] * 3


def test_frequent_words_come_first_and_rare_ones_are_unknown() -> None:
    words = Vocabulary.learn([*LINES, "once"], min_count=2, max_size=3)
    assert len(words) == 4 + 3
    assert words.encode("the cat once saw") == [4, 5, UNKNOWN, UNKNOWN]
    assert words.decode([4, UNKNOWN]) == "the <unk>"
    assert words.decode([4, UNKNOWN], ["x", "Rex"]) == "the Rex"


def test_a_word_of_the_text_is_never_special() -> None:
    words = Vocabulary.learn(["<s> </s> <pad> <unk>"] * 2, min_count=1, max_size=9)
    assert min(words.encode("<pad> <s> </s> <unk>")) >= 4
    assert words.decode(words.encode("<s> <pad>")) == "<s> <pad>"


def test_a_vocabulary_is_kept_in_a_file(tmp_path: Path) -> None:
    vocabulary = Vocabulary.learn(LINES, 1, 99)
    vocabulary.save(tmp_path, "source")
    again = Vocabulary.load(tmp_path, "source")
    assert len(again) == len(vocabulary)
    assert again.encode(LINES[0]) == vocabulary.encode(LINES[0])
    with pytest.raises(LupiError, match="no target vocabulary that can be read"):
        Vocabulary.load(tmp_path, "target")
