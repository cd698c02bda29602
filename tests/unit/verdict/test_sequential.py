import numpy as np
import pytest

from lupi.design import Looks
from lupi.verdict.statistics.paired import PairedTest
from lupi.verdict.statistics.sequential import SequentialTest


def test_one_look_is_a_paired_test_at_its_share() -> None:
    differences = np.random.default_rng(0).normal(0.5, 1, size=8)
    alone = PairedTest(differences)
    test = SequentialTest(differences, Looks((8,)).reached(8))
    assert test.p_above() == pytest.approx(min(1, alone.p_above() / 0.8))
    assert test.bounds(0.025) == (alone.low(0.02), alone.high(0.02))
    assert (test.n_seeds, test.mean) == (8, alone.mean)


def test_a_later_look_sees_more_seeds_and_spends_half_of_what_is_left() -> None:
    looks = Looks((7, 9, 12), first_share=0.5)
    assert looks.reached(6) == [(6, 0.5)]  # preliminary
    assert looks.reached(10) == [(7, 0.5), (9, 0.25)]
    assert looks.reached(12) == [(7, 0.5), (9, 0.25), (12, 0.125)]
    (_, first), (n_seeds, second) = Looks((8, 12)).reached(12)
    assert (first, n_seeds, second) == pytest.approx((0.8, 12, 0.1))


def test_looks_of_an_earlier_plan_count_if_they_took_place() -> None:
    fixed, more, open_ = Looks((8,)), Looks((12,)), Looks.until_decided(16)
    assert more.after(None, 0) == more
    assert more.after(fixed, 5) == more  # the first plan was not finished: nothing was judged
    assert more.after(fixed, 8) == Looks((8, 12))
    assert fixed.after(fixed, 8) == fixed
    assert open_.after(fixed, 8) == Looks((8, 9, 12, 16))
    assert open_.after(open_, 9) == open_
    assert more.after(open_, 9) == Looks((7, 9, 12), first_share=0.5)


def test_looks_until_decided_reach_the_budget() -> None:
    assert Looks.until_decided(30).counts == (7, 9, 12, 16, 22, 30)
    assert Looks.until_decided(10).counts == (7, 9, 10)
    assert Looks.until_decided(5).counts == (5,)


def test_stopping_as_soon_as_there_is_an_answer_is_no_way_to_get_a_wrong_one() -> None:
    """Adding seeds after a look was advised, and each look had the whole 5 % to itself."""
    rng = np.random.default_rng(1)
    n_trials, wrong = 1000, 0
    looks = Looks.until_decided(16)
    for _ in range(n_trials):
        differences = rng.normal(size=16)
        low, high = SequentialTest(differences, looks.reached(16)).bounds(0.025)
        wrong += low > 0 or high < 0
    assert 0 < wrong / n_trials <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / n_trials)
