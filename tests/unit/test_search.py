from random import Random
from typing import Any

import pytest

from lupi.errors import LupiError
from lupi.search import Range, Space, draw, format_choices, parse_space


def test_draws_stay_inside_and_can_be_read() -> None:
    space: Space = {
        "a": Range(low=0.01, high=1, log=True),
        "b": Range(low=-1, high=2),
        "c": (1, "x"),
    }
    draws = [draw(space, chance) for chance in [Random(0)] for _ in range(400)]
    assert all(0.01 <= d["a"] <= 1 and -1 <= d["b"] <= 2 and d["c"] in (1, "x") for d in draws)
    assert all(float(f"{d['a']:.3g}") == d["a"] for d in draws)
    below = sum(d["a"] < 0.1 for d in draws) / len(draws)
    assert 0.4 < below < 0.6  # evenly in the logarithm
    assert {d["c"] for d in draws} == {1, "x"}


def test_the_same_seed_draws_the_same() -> None:
    space = {"a": Range(low=0, high=1)}
    assert draw(space, Random(3)) == draw(space, Random(3)) != draw(space, Random(4))


def test_values_are_shown_to_people() -> None:
    assert format_choices(Range(low=0.1, high=4, log=True)) == "0.1 to 4, log"
    assert format_choices((1, 2, 5)) == "1, 2, 5"


def test_a_space_is_read_from_settings() -> None:
    space = parse_space({"settings.prior": [0.5, 1], "network.dropout": {"low": 0, "high": 1}}, "s")
    assert space == {"settings.prior": (0.5, 1), "network.dropout": Range(low=0, high=1)}


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (3, "s.a: got 3; expected a list of values"),
        ([], r"s.a: got \[\]; expected a list of values"),
        ({"low": 2, "high": 1}, "s.a: low must be below high"),
        ({"low": 0, "high": 1, "log": True}, "s.a: with `log` low must be above 0"),
        ({"low": 0, "hig": 1}, "s.a.hig: no such key; did you mean `high`"),
    ],
)
def test_mistakes(raw: Any, message: str) -> None:
    with pytest.raises(LupiError, match=message):
        parse_space({"a": raw}, "s")
