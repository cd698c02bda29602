from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lupi.errors import LupiError
from lupi.loaders.text.span_controls import read_word_list
from lupi.loaders.text.texts import TextFileSettings, load_texts
from lupi.loaders.text.word_vocabulary import WordVocabulary, choose_words
from made_reviews import COLUMNS, write_csv, write_jsonl

HEADER = ["review", "label", "spans"]
GOOD = ["a silly film", "bad", [[2, 7]]]


def settings_of(path: Path, **changes: Any) -> TextFileSettings:
    return TextFileSettings.parse({"path": path, **COLUMNS, **changes}, "task")


def test_words_are_numbered_and_rationales_marked(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", [HEADER, GOOD, ["a great film", "good", ""]])
    texts, lexemes, findings, form = load_texts(settings_of(path))
    train = texts["train"]
    assert list(lexemes) == ["a", "silly", "film", "great"]
    assert [words.tolist() for words in train.words] == [[0, 1, 2], [0, 3, 2]]
    assert train.regions[0] is not None
    assert train.regions[0].tolist() == [0, 1, 0]
    assert train.regions[1] is None
    assert (train.targets, train.numbers, form) == (["bad", "good"], [1, 2], "spans")
    assert findings.counts() == {}


def test_annotators_may_have_a_column_each(tmp_path: Path) -> None:
    header = ["review", "label", "a", "b"]
    row: list[Any] = ["a silly film", 1, [[2, 7]], [[2, 12]]]
    path = write_jsonl(tmp_path / "a.jsonl", [header, row])
    loaded = load_texts(settings_of(path, rationale=["a", "b"]))
    assert loaded.parts["train"].regions[0] is not None
    assert loaded.parts["train"].regions[0].tolist() == [0, 1, 0.5]


def test_words_may_be_given_as_lists(tmp_path: Path) -> None:
    rows: list[list[Any]] = [HEADER, [["A", "well-made", "film"], 1, [0, 1, 0]]]
    loaded = load_texts(settings_of(write_jsonl(tmp_path / "a.jsonl", rows)))
    assert list(loaded.lexemes) == ["a", "well", "-", "made", "film"]
    assert loaded.parts["train"].regions[0] is not None
    assert loaded.parts["train"].regions[0].tolist() == [0, 1, 1, 1, 0]


def test_tags_are_those_of_the_text_column(tmp_path: Path) -> None:
    rows: list[list[Any]] = [["review", "label"], ["a <NEG>silly film</NEG>", 0], ["great", 1]]
    path = write_csv(tmp_path / "a.tsv", rows, "\t")
    loaded = load_texts(settings_of(path, rationale="review"))
    assert (list(loaded.lexemes), loaded.form) == (["a", "silly", "film", "great"], "tags")
    train = loaded.parts["train"]
    assert [None if r is None else r.tolist() for r in train.regions] == [[0, 1, 1], None]


@pytest.mark.parametrize(
    ("row", "kind", "message"),
    [
        (["a film", "good", [[2, 99]]], "rationale that does not fit the text", "[2, 99]"),
        (["a film", "good", "[[2,"], "rationale that does not fit the text", "not JSON"),
        (["", "good", ""], "no text", "column review is empty"),
        (["   ", "good", ""], "no text", "column review is empty"),
        (["a film", " ", ""], "no target", "column label is empty"),
        (["a film"], "row that can't be read", "1 fields"),
    ],
)
def test_bad_rows_stop_or_are_skipped_and_counted(
    tmp_path: Path, row: list[Any], kind: str, message: str
) -> None:
    path = write_csv(tmp_path / "a.csv", [HEADER, GOOD, GOOD, row])
    with pytest.raises(LupiError) as stopped:
        load_texts(settings_of(path))
    assert f"a.csv row 3: {kind}" in str(stopped.value)
    assert message in str(stopped.value)
    assert "on_bad" in str(stopped.value)
    loaded = load_texts(settings_of(path, on_bad="skip"))
    assert loaded.findings.counts() == {kind: 1}
    kept = kind.startswith("rationale")  # such a row is one without x*
    assert len(loaded.parts["train"]) == 2 + kept
    assert sum(region is not None for region in loaded.parts["train"].regions) == 2


def test_tags_that_do_not_fit_are_removed_where_rows_are_skipped(tmp_path: Path) -> None:
    rows: list[list[Any]] = [["review", "label"], ["a <r>silly film", 0], ["<r>great</r>", 1]]
    path = write_csv(tmp_path / "a.csv", rows)
    with pytest.raises(LupiError, match=r"row 1: .*tag <r> is never closed"):
        load_texts(settings_of(path, rationale="review"))
    loaded = load_texts(settings_of(path, rationale="review", on_bad="skip"))
    assert list(loaded.lexemes) == ["a", "silly", "film", "great"]


def test_long_texts_are_cut_and_counted(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", [HEADER, GOOD, ["one two three four", "good", [[0, 3]]]])
    loaded = load_texts(settings_of(path, max_length=3))
    assert loaded.findings.counts() == {"text cut off": 1}
    assert [len(words) for words in loaded.parts["train"].words] == [3, 3]


def test_held_out_files_need_no_rationale(tmp_path: Path) -> None:
    train = write_csv(tmp_path / "a.csv", [HEADER, GOOD])
    test = write_csv(tmp_path / "b.csv", [["review", "label"], ["a film", "good"]])
    loaded = load_texts(settings_of(train, test=test))
    assert loaded.parts["test"].regions == [None]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rationale": "label"}, "'label' is also the text or the rationale"),
        ({"rationale": ["review", "spans"]}, "the text column means tags"),
        ({"rationale": "review", "rationale_form": "spans"}, "the text column means tags"),
        ({"rationale_form": "tags"}, "tags are in the text"),
        ({"rationale_form": "spans", "rationale": []}, "has no effect without"),
        ({"text": "reviews"}, "did you mean `review`"),
        ({"rationale": "span"}, "did you mean `spans`"),
        ({"rationale_form": "flags"}, "row 1: .*expected flags"),
    ],
)
def test_wrong_columns_are_refused(tmp_path: Path, changes: Any, message: str) -> None:
    path = write_csv(tmp_path / "a.csv", [HEADER, GOOD])
    with pytest.raises(LupiError, match=message):
        load_texts(settings_of(path, **changes))


def test_a_file_without_any_rationale_or_row_is_refused(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", [HEADER, ["a film", "good", ""]])
    with pytest.raises(LupiError, match="column spans gives no row a rationale"):
        load_texts(settings_of(path))
    path = write_csv(tmp_path / "b.csv", [HEADER, ["", "good", [[0, 1]]]])
    with pytest.raises(LupiError, match="has no rows with text and target"):
        load_texts(settings_of(path, on_bad="skip"))


def test_the_vocabulary_is_that_of_the_most_texts() -> None:
    texts = [np.array(t, dtype=np.int32) for t in ([3, 3, 3, 1], [1, 2], [1, 2, 0])]
    assert choose_words(texts, 5, 1, 10).tolist() == [1, 2, 0, 3]
    assert choose_words(texts, 5, 2, 10).tolist() == [1, 2]
    assert choose_words(texts, 5, 1, 1).tolist() == [1]
    with pytest.raises(LupiError, match="no word occurs in 4 of the 3 texts"):
        choose_words(texts, 5, 4, 10)


def test_unknown_words_are_absent() -> None:
    vocabulary = WordVocabulary(["film", "a"])
    assert vocabulary.encode(["a", "silly", "film"]).tolist() == [2, 0, 1]
    assert vocabulary.encode([]).tolist() == [0]
    with pytest.raises(LupiError, match="has a duplicate word"):
        WordVocabulary(["a", "a"])


def test_a_word_list_names_the_words_of_the_texts(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_text("# a comment\nSilly\n\nunseen\ngreat\n")
    found = read_word_list(path, {"a": 0, "great": 1, "silly": 2})
    assert found is not None
    assert found.tolist() == [1, 2]
    assert read_word_list(None, {}) is None
    with pytest.raises(LupiError, match="no text has any of the 3 words"):
        read_word_list(path, {"film": 0})
    with pytest.raises(LupiError, match="can't be read as UTF-8"):
        read_word_list(tmp_path / "none.txt", {})


def test_a_rationale_that_was_cut_off_is_none(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", [HEADER, GOOD, ["one two three", "good", [[8, 13]]]])
    loaded = load_texts(settings_of(path, max_length=2))
    assert loaded.parts["train"].regions[0] is not None
    assert loaded.parts["train"].regions[1] is None


def test_tags_of_a_text_with_spans_are_left_alone(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", [HEADER, GOOD, ["a <r> film", "good", [[0, 99]]]])
    loaded = load_texts(settings_of(path, on_bad="skip"))
    assert "r" in loaded.lexemes
