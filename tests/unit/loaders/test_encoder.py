import json

import numpy as np
import pandas as pd
import pytest

from lupi.errors import LupiError
from lupi.loaders.tables.encoder import TableEncoder


def encode(
    column: list[object],
    new: list[object] | None = None,
    categorical: bool = False,
    indicators: bool = True,
) -> np.ndarray:
    frame = pd.DataFrame({"a": column})
    encoder = TableEncoder.lay_out(frame, ["a"] if categorical else [], indicators).fit(frame)
    return encoder.transform(frame if new is None else pd.DataFrame({"a": new}))


def test_numbers_are_standardised_and_cut_off() -> None:
    assert encode([1.0, 3.0]).tolist() == [[-1.0], [1.0]]
    assert encode([1.0, 3.0], [1e9, 2.0]).tolist() == [[10.0], [0.0]]


def test_a_missing_number_is_the_mean_and_says_so() -> None:
    assert encode([1.0, 3.0, None]).tolist() == [[-1, 0], [1, 0], [0, 1]]
    assert encode([1.0, 3.0, float("inf")]).tolist() == [[-1, 0], [1, 0], [0, 1]]
    assert encode([1.0, 3.0, None], indicators=False).tolist() == [[-1], [1], [0]]


def test_a_missing_number_where_none_was_missing_is_the_mean() -> None:
    assert encode([1.0, 3.0], [None, 5.0]).tolist() == [[0.0], [3.0]]


def test_a_constant_tells_nothing() -> None:
    assert encode([7.1, 7.1, 7.1], [7.1, 9.0]).tolist() == [[0.0], [0.0]]


def test_categories_are_one_hot_with_a_place_for_others() -> None:
    column: list[object] = ["b", "a", "b", "a", "rare"]
    assert encode(column).tolist() == [[0, 1, 0], [1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1]]
    assert encode(column, ["never seen", "a"]).tolist() == [[0, 0, 1], [1, 0, 0]]


def test_others_that_training_never_had_stay_empty() -> None:
    assert encode(["a", "b"] * 2, ["never seen"]).tolist() == [[0, 0, 0]]


def test_missing_categories_have_an_indicator() -> None:
    assert encode(["a", "a", None]).tolist() == [[1, 0, 0], [1, 0, 0], [0, 0, 1]]


def test_truth_values_are_categories_whether_read_as_text_or_not() -> None:
    column: list[object] = [True, False, False, True]
    assert encode(column)[:2].tolist() == [[0, 1, 0], [1, 0, 0]]
    assert encode(column, ["True", None]).tolist() == [[0, 1, 0], [0, 0, 0]]


def test_numbers_can_be_categories_whatever_their_type() -> None:
    found = encode([1, 1, 2, 2], [1.0, 2.0, None], categorical=True)
    assert found.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 0]]


def test_many_categories_keep_the_frequent_ones() -> None:
    column: list[object] = [*(f"c{i // 2}" for i in range(200)), *["often"] * 3]
    encoded = encode(column)
    assert encoded.shape[1] == 33
    assert encoded[-1, :-1].sum() == 1
    assert (encoded.sum(1) == 1).all()


def test_dates_become_days_and_cycles() -> None:
    column: list[object] = ["2024-01-01", "2024-01-08T12:00", None, "2024-07-01"]
    frame = pd.DataFrame({"a": column})
    encoder = TableEncoder.lay_out(frame)
    assert encoder.columns[0].kind == "date"
    raw = encoder.columns[0].raw(frame["a"])
    assert raw.shape == (4, 8)
    assert raw[1, 0] - raw[0, 0] == pytest.approx(7.5)
    monday, later = raw[0, 3:5], encoder.columns[0].raw(pd.Series(["2024-01-15"]))[0, 3:5]
    assert monday == pytest.approx(later)  # the same day of the week
    assert raw[:, -1].tolist() == [0, 0, 1, 0]
    stamps = pd.DataFrame({"a": pd.to_datetime(frame["a"], format="ISO8601")})
    assert np.array_equal(encoder.columns[0].raw(stamps["a"]), raw, equal_nan=True)


def test_words_and_years_are_no_dates() -> None:
    frame = pd.DataFrame({"a": ["2024-01-01", "soon"], "b": [2023, 2024]})
    assert [column.kind for column in TableEncoder.lay_out(frame).columns] == ["category", "number"]


def test_vectors_have_the_length_of_the_layout_whatever_it_is_fitted_on() -> None:
    frame = pd.DataFrame({"a": ["x", "y", "z"] * 4, "b": [1.0, None, 2.0] * 4})
    layout = TableEncoder.lay_out(frame)
    few = layout.fit(frame[:1])
    assert few.transform(frame).shape == (12, layout.width)
    assert few.transform(frame)[1].tolist() == [0.0] * layout.width  # y, missing: never seen
    assert layout.fit(frame[:0]).transform(frame).tolist() == [[0.0] * layout.width] * 12


def test_an_encoder_survives_json() -> None:
    frame = pd.DataFrame(
        {"a": ["x", "y", None], "b": [1.0, 4.0, None], "c": ["2024-01-02", None, "2025-01-01"]}
    )
    encoder = TableEncoder.lay_out(frame).fit(frame)
    again = TableEncoder.from_json(json.loads(json.dumps(encoder.to_json())))
    assert again == encoder
    assert np.array_equal(again.transform(frame), encoder.transform(frame))


def test_new_rows_need_the_columns_and_their_kind() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0]})
    encoder = TableEncoder.lay_out(frame).fit(frame)
    with pytest.raises(LupiError, match="no column 'a'; it has b"):
        encoder.transform(pd.DataFrame({"b": [1.0]}))
    with pytest.raises(LupiError, match="column 'a' is numeric, but has 'two' in row 2"):
        encoder.transform(pd.DataFrame({"a": ["1", "two"]}))


def test_whole_days_have_no_time_of_day() -> None:
    frame = pd.DataFrame({"sent": pd.date_range("2024-01-01", periods=40).astype(str)})
    encoder = TableEncoder.lay_out(frame).fit(frame)
    assert encoder.columns[0].factor[-2:] == (0.0, 0.0)  # not a rounding error scaled up
    hourly = pd.DataFrame({"sent": pd.date_range("2024-01-01", periods=40, freq="7h").astype(str)})
    assert min(TableEncoder.lay_out(hourly).fit(hourly).columns[0].factor[-2:]) > 0


def test_columns_that_are_encoded_together_are_as_if_alone() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(30, 4, (257, 5)), columns=list("abcde"))
    frame["constant"], frame["whole"] = 7.0, rng.integers(0, 9, 257)
    frame["gaps"] = frame["a"].where(rng.random(257) > 0.2)
    frame["van"] = rng.choice(["old", "new"], 257)
    laid_out = TableEncoder.lay_out(frame)
    encoder = laid_out.fit(frame)
    alone = [column.fit(frame[column.name]) for column in laid_out.columns]
    assert list(encoder.columns) == alone
    vectors = [column.transform(frame[column.name]) for column in alone]
    assert (encoder.transform(frame) == np.concatenate(vectors, 1).astype(np.float32)).all()
