"""The simulation behind docs/verdict.md and docs/judge.md, shortened."""

import numpy as np
import pytest

import verdict_errors as verdict
from lupi.design import Looks

SLACK = 3 * np.sqrt(0.05 * 0.95 / 150)


@pytest.mark.parametrize("shape", verdict.SHAPES, ids=str)
def test_equal_arms_rarely_get_a_claim(shape: verdict.Shape) -> None:
    assert verdict.wrong_claims("normal", shape, 8, 150) <= 0.05 + SLACK


def test_the_table_can_show_an_error() -> None:
    """With one method, one control and one size the error is near the level, not near zero."""
    assert verdict.wrong_claims("normal", verdict.SHAPES[0], 8, 400) >= 0.01


def test_without_the_correction_for_shared_rows_the_table_fails() -> None:
    with_it, without = verdict.wrong_on_pools(verdict.Pool("row weights", 0.6), 8, 100)
    assert with_it <= 0.05 + SLACK
    assert without > 0.15


def test_one_good_arm_of_ten_is_found() -> None:
    effects = np.zeros((10, 1))
    effects[0] = 2.0
    found = verdict.power(verdict.SHAPES[3], effects, 8, 100)
    assert found[0] >= 0.7
    assert found[1:].mean() <= 0.05


def test_one_size_of_two_is_found_with_six_seeds() -> None:
    assert verdict.power(verdict.Shape(1, 1, 2), np.array([[3.0, 0.0]]), 6, 60)[0] >= 0.7


def test_what_is_said_of_rare_failures_is_true() -> None:
    helps, is_true = verdict.rare_failures(0.1, 8, 60)
    assert helps > 0.2  # no test with few seeds can avoid it
    assert is_true == 1
    assert verdict.false_equivalence(0.1, 8, 60) == 0


def test_the_best_of_ten_is_overstated_and_fresh_seeds_are_not() -> None:
    printed, fresh = verdict.winners_gain(10, Looks((8,)), 60)
    assert printed > 1.2
    assert abs(fresh - 1) < 3 * np.sqrt(1 / 8 / 60)


def test_a_question_asked_first_needs_fewer_seeds() -> None:
    effects = np.zeros((10, 1))
    effects[0] = 1.5
    freely, first = (verdict.power(verdict.SHAPES[3], effects, 8, 60, o)[0] for o in ((), (0,)))
    assert first > freely + 0.1


def test_rules_that_ignore_how_many_arms_were_tried_are_wrong_more_often() -> None:
    ours, student = (
        float(verdict.rival(name, 60)[1].removesuffix(" %"))
        for name in ("`lupi.judge`", "paired t-test")
    )
    assert ours < student
