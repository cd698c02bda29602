from dataclasses import replace
from typing import Any

import pytest

from lupi.errors import LupiError
from lupi.records import Arm, Metric
from lupi.verdict.scores import read_scores

from .comparisons import around, comparison, result


def test_scores_by_seed_and_common_seeds() -> None:
    scores = read_scores(
        comparison({"no-xstar": {75: [0.5, None, 0.52]}, "het-dropout": {75: [0.6, 0.61, 0.62]}})
    )
    assert scores.sizes == (75,)
    assert scores.seeds == (0, 1, 2)
    assert scores.runs["no-xstar", 75].scores == {0: 0.5, 2: 0.52}
    assert scores.runs["no-xstar", 75].n_missing == 1
    assert scores.common_seeds(("no-xstar", 75), ("het-dropout", 75)) == [0, 2]
    assert scores.gains("het-dropout", 75, [0, 2]).tolist() == [0.6, 0.62]
    assert scores.trivial == 0.1


def test_gains_are_turned_when_lower_is_better() -> None:
    scores = read_scores(
        comparison({"no-xstar": {75: [1.5]}}, Metric("loss", higher_is_better=False))
    )
    assert scores.gains("no-xstar", 75, [0]).tolist() == [-1.5]
    assert scores.runs["no-xstar", 75].scores == {0: 1.5}


CORRUPT: list[dict[str, Any]] = [
    {},
    {"metrics": None},
    {"metrics": {"test": [0.5]}},
    {"metrics": {"val": {"accuracy": 0.5}}},
    {"metrics": {"test": {"loss": 0.5}}},
    result("0.5"),
    result(None),
    result(True),
    result(float("nan")),
    result(float("-inf")),
    result(10**400),
]


@pytest.mark.parametrize("document", CORRUPT, ids=lambda document: str(document)[:60])
def test_a_result_without_a_finite_score_is_missing_and_said_so(document: dict[str, Any]) -> None:
    scores = read_scores(comparison({"no-xstar": {75: [0.5, document]}}))
    cell = scores.runs["no-xstar", 75]
    assert cell.scores == {0: 0.5}
    assert cell.n_missing == 1
    (warning,) = scores.warnings
    assert warning.startswith("runs/demo/no-xstar-75-1: ")
    assert "missing" in warning


def test_diverged_runs_count_with_the_score_they_have() -> None:
    diverged = [result(0.1, status="diverged"), result(None, status="diverged")]
    cell = read_scores(comparison({"no-xstar": {75: [0.5, *diverged]}})).runs["no-xstar", 75]
    assert cell.scores == {0: 0.5, 1: 0.1}
    assert (cell.n_diverged, cell.n_missing) == (2, 1)


@pytest.mark.parametrize(
    ("flags", "collapsed"),
    [
        ([True, False, False], False),
        ([True, False], True),
        ([None, None], False),
        (["true", 1], False),
        ([], False),
    ],
)
def test_collapsed_means_half_or_more(flags: list[object], collapsed: bool) -> None:
    runs = [result(0.5, collapsed=flag) for flag in flags]
    cells = read_scores(comparison({"het-dropout": {75: [*runs, None]}}))
    assert cells.runs["het-dropout", 75].collapsed is collapsed


def test_a_trivial_score_that_is_not_there_is_none() -> None:
    runs = [result(0.5, trivial=None), result(0.5, trivial={"accuracy": float("nan")})]
    assert read_scores(comparison({"no-xstar": {75: runs}})).trivial is None


def test_a_plan_that_contradicts_itself_is_an_error() -> None:
    record = comparison({"no-xstar": {75: [0.5, 0.6]}})
    with pytest.raises(LupiError, match="planned twice"):
        read_scores(replace(record, runs=[*record.runs, record.runs[0]]))
    with pytest.raises(LupiError, match="belongs to no arm"):
        read_scores(replace(record, arms=[Arm("other", "no-xstar")]))
    with pytest.raises(LupiError, match="names an arm twice"):
        read_scores(replace(record, arms=[*record.arms, *record.arms]))


def test_seeds_count_in_the_order_of_the_plan() -> None:
    """They were sorted, so a seed that was added below the first ones changed an earlier look."""
    record = comparison({"no-xstar": {75: around(0.5, 3)}})
    assert read_scores(replace(record, runs=record.runs[::-1])).seeds == (2, 1, 0)
