from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lupi.loaders.text.rationales import (
    BadRationaleError,
    Form,
    find_form,
    mark_words,
    read_cell,
    strip_tags,
)
from lupi.loaders.text.tokens import locate_words, split_words

TEXT = "A silly film. Don't miss it!"
WORDS = ["a", "silly", "film", ".", "don't", "miss", "it", "!"]


def marked(cell: Any, form: Form, text: str = TEXT, how: Any = "mean") -> list[float]:
    words = locate_words(text)
    marks = mark_words(read_cell(cell), form, text, words, how)
    assert marks is not None
    return [float(mark) for mark in marks]


def test_words_are_lower_case_with_apostrophes_and_signs_apart() -> None:
    assert split_words(TEXT) == locate_words(TEXT).words == WORDS
    assert split_words("it’s 3D, naïve") == ["it’s", "3d", ",", "naïve"]


@given(st.text())
def test_every_word_is_where_it_says(text: str) -> None:
    words, starts, ends = locate_words(text)
    assert words == [text[a:b].lower() for a, b in zip(starts, ends, strict=True)]
    assert words == split_words(text)


@pytest.mark.parametrize(
    ("cell", "form"),
    [
        ([[2, 12]], "spans"),
        ("[[2, 12]]", "spans"),
        ([[2, 6], [9, 11]], "spans"),  # part of a word marks it
        ([{"start": 2, "end": 12}], "spans"),
        (["silly film"], "snippets"),
        ('["SILLY  film"]', "snippets"),
        ("silly film", "snippets"),
        ([0, 1, 1, 0, 0, 0, 0, 0], "flags"),
        ("0 1 1 0 0 0 0 0", "flags"),
        (np.array([0, 1, 1, 0, 0, 0, 0, 0]), "flags"),
    ],
)
def test_every_form_marks_the_same_words(cell: Any, form: Form) -> None:
    assert find_form([read_cell(cell)]) == form
    assert marked(cell, form) == [0, 1, 1, 0, 0, 0, 0, 0]


def test_flags_may_be_of_the_pieces_between_spaces() -> None:
    assert marked("0 0 1 0 0 1", "flags") == [0, 0, 1, 1, 0, 0, 1, 1]


@pytest.mark.parametrize(
    ("cell", "form"),
    [
        ([[[2, 12]], [[2, 7], [25, 27]]], "spans"),
        ([["silly film"], ["silly", "it"]], "snippets"),
        ([[0, 1, 1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0, 1, 0]], "flags"),
    ],
)
def test_annotators_are_averaged_or_any_of_them_counts(cell: Any, form: Form) -> None:
    assert find_form([read_cell(cell)]) == form
    assert marked(cell, form) == [0, 1, 0.5, 0, 0, 0, 0.5, 0]
    assert marked(cell, form, how="any") == [0, 1, 1, 0, 0, 0, 1, 0]


def test_an_annotator_who_marked_nothing_counts() -> None:
    assert marked([[[2, 7]], []], "spans") == [0, 0.5, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("cell", ["", "  ", "[]", [], [[]], None, float("nan")])
def test_empty_cells_are_no_rationale(cell: Any) -> None:
    assert read_cell(cell) is None


def test_the_column_tells_flags_of_two_annotators_from_spans() -> None:
    two_words, longer = [[0, 1], [1, 1]], [[0, 1, 0], [1, 1, 0]]
    assert find_form([two_words]) == "spans"
    assert find_form([two_words, None, longer]) == "flags"
    assert find_form([None, None]) is None


def test_tags_are_removed_and_become_spans() -> None:
    text, spans = strip_tags("A <NEG>silly film</NEG>. <r>Don't</r> miss it!", ["NEG", "r"])
    assert text == TEXT
    assert spans == [(2, 12), (14, 19)]
    assert strip_tags("a <b>bold</b> claim", ["r"]) == ("a <b>bold</b> claim", [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a <r>film", "tag <r> is never closed"),
        ("a film</r>", "tag </r> without an opening tag, at character 6"),
        ("a <r>silly <r>film</r></r>", "tag <r> inside <r>"),
        ("a <POS>film</NEG>", "tag </NEG> inside <POS>"),
    ],
)
def test_tags_that_do_not_fit_together_are_named(text: str, message: str) -> None:
    with pytest.raises(BadRationaleError, match=message):
        strip_tags(text, ["POS", "NEG", "r"])


@pytest.mark.parametrize(
    ("cell", "form", "message"),
    [
        ([[2, 99]], "spans", r"span \[2, 99\] does not fit a text of 28 characters"),
        ([[-1, 3]], "spans", "does not fit"),
        ([[5, 5]], "spans", "does not fit"),
        ([[5, 3]], "spans", "does not fit"),
        ([[1.5, 3]], "spans", "whole numbers"),
        ([[True, 3]], "spans", "whole numbers"),
        ([[1, 2, 3]], "spans", r"expected spans \[start, end\]"),
        (["silly"], "spans", "expected spans"),
        ([3], "snippets", "expected snippets"),
        ([0, 1], "flags", "2 flags for a text of 6 words separated by spaces"),
        ([0, 2, 0, 0, 0, 0, 0, 0], "flags", "numbers from 0 to 1"),
        ("yes no", "flags", "numbers from 0 to 1"),
    ],
)
def test_rationales_that_do_not_fit_are_named(cell: Any, form: Form, message: str) -> None:
    with pytest.raises(BadRationaleError, match=message):
        marked(cell, form)


@pytest.mark.parametrize(
    ("cell", "form"),
    [([[1, 2]], "spans"), (["a great film"], "snippets"), (["  "], "snippets"), ([0] * 8, "flags")],
)
def test_rationales_that_mark_nothing_are_none(cell: Any, form: Form) -> None:
    assert mark_words(cell, form, TEXT, locate_words(TEXT), "mean") is None


@pytest.mark.parametrize("cell", ["[[2, 3]", "[" * 100_000, "[silly]"])
def test_lists_that_are_no_json_are_named(cell: str) -> None:
    with pytest.raises(BadRationaleError, match="not JSON"):
        read_cell(cell)


def test_snippets_that_would_be_searched_for_minutes_are_refused() -> None:
    text = "ab " * 20_000
    words = locate_words(text)
    with pytest.raises(BadRationaleError, match=r"too many or too long .*use spans"):
        mark_words(["ab " * 10_000 + "x"], "snippets", text, words, "mean")
    marks = mark_words(["ab"] * 2000, "snippets", text, words, "mean")
    assert marks is not None
    assert marks.all()
