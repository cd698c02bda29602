from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lupi.errors import LupiError
from lupi.records import ComparisonRecord, Metric
from lupi.verdict.side_by_side import side_by_side

from .comparisons import around, comparison


def record(name: str, task: dict[str, Any] | None = None, **scores: Any) -> ComparisonRecord:
    task = {"name": "digits", "image_size": 24} if task is None else task
    results = {arm.replace("_", "-"): by_size for arm, by_size in scores.items()}
    return replace(comparison(results), folder=Path(name), task=task)


def test_differences_are_paired_over_common_seeds() -> None:
    first = record("a", no_xstar={75: around(0.5), 150: around(0.6)}, oracle={75: around(0.9)})
    second = record("b", no_xstar={75: around(0.6)[:7]}, het_dropout={75: []})
    found = side_by_side(first, second)
    (pair,) = found.pairs
    assert (pair.arm, pair.size, pair.n_pairs) == ("no-xstar", 75, 7)
    assert pair.difference is not None
    assert pair.difference.mean == pytest.approx(0.1, abs=0.002)
    assert pair.difference.p_value == pytest.approx(2 / 2**7 / 0.8)
    assert (found.only_first, found.only_second) == (("oracle",), ("het-dropout",))


def test_p_is_corrected_over_the_sizes_of_an_arm() -> None:
    better = around(0.6)
    first = record("a", no_xstar={75: around(0.5), 150: around(0.5)})
    second = record("b", no_xstar={75: better, 150: around(0.5, own=True)})
    small, large = side_by_side(first, second).pairs
    assert small.difference is not None
    assert large.difference is not None
    alone = side_by_side(
        record("a", no_xstar={75: around(0.5)}), record("b", no_xstar={75: better})
    ).pairs[0]
    assert alone.difference is not None
    assert alone.difference.p_value <= small.difference.p_value <= 0.05
    assert large.difference.p_value > 0.05


def test_lower_is_better_turns_the_sign() -> None:
    metric = Metric("loss", higher_is_better=False)
    first, second = (
        replace(record(name, no_xstar={75: scores}), metric=metric)
        for name, scores in (("a", around(0.5)), ("b", around(0.4)))
    )
    for side in (first, second):
        for run in side.runs:
            assert run.result is not None
            run.result["metrics"]["test"]["loss"] = run.result["metrics"]["test"]["accuracy"]
    (pair,) = side_by_side(first, second).pairs
    assert pair.difference is not None
    assert pair.difference.mean == pytest.approx(0.1)


def test_other_settings_of_the_data_leave_nothing_to_pair() -> None:
    first = record("a", no_xstar={75: around(0.5)})
    second = record("b", {"name": "digits", "image_size": 32}, no_xstar={75: around(0.6)})
    found = side_by_side(first, second)
    assert found.data_differ == "image_size 24 and 32"
    assert found.pairs[0].difference is None
    assert found.pairs[0].second == pytest.approx(0.6, abs=0.01)


def test_other_data_are_refused_by_name() -> None:
    first = record("a", no_xstar={75: around(0.5)})
    second = record("b", {"name": "imagenet"}, no_xstar={75: around(0.5)})
    with pytest.raises(LupiError, match="a and b can't be compared: their data are 'digits' and"):
        side_by_side(first, second)
    other = replace(first, folder=Path("c"), metric=Metric("bleu"))
    with pytest.raises(LupiError, match="their metrics are 'accuracy' and 'bleu'"):
        side_by_side(first, other)


def test_nothing_in_common_is_a_mistake() -> None:
    first, second = record("a", no_xstar={75: [0.5]}), record("b", no_xstar={80: [0.5]})
    with pytest.raises(LupiError, match="have no common arm and size"):
        side_by_side(first, second)
