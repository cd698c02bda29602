from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from lupi.design import Looks
from lupi.errors import LupiError
from lupi.records import Arm
from lupi.verdict.answer import Verdict
from lupi.verdict.roles import controls, find_reference
from lupi.verdict.statistics.sequential import SequentialTest
from lupi.verdict.verdict import Judged, Question, judge_family, seeds_needed

from .comparisons import ARMS

REFERENCE, GAUSSIAN, REAL, SHUFFLED, _, ORACLE = ARMS
WIGGLE = np.array([0.002, -0.001, 0.003, 0.001, -0.002, 0.0005, -0.003, 0.0015, 0.001, -0.0015])
SHARE = 0.8


def question(
    gains: Mapping[str, float],
    n_seeds: int = 8,
    margin: float = 0.01,
    about_xstar: bool = True,
    collapsed: bool = False,
    n_controls: int | None = None,
) -> Question:
    """An arm that is better than each control by so much, give or take little."""
    looks = Looks((n_seeds,)).reached(n_seeds)
    tests = {name: SequentialTest(gain + WIGGLE[:n_seeds], looks) for name, gain in gains.items()}
    count = len(tests) if n_controls is None else n_controls
    return Question(tests, count, margin, about_xstar, collapsed)


def judge(*questions: Question) -> list[Judged]:
    return judge_family(questions)


def words(*questions: Question) -> list[Verdict]:
    return [judged.verdict for judged in judge(*questions)]


def test_reference_is_the_first_plain_arm_with_real_data() -> None:
    second = Arm("plain-again", "no-xstar")
    shuffled = Arm("no-xstar/shuffled", "no-xstar", control="shuffled")
    assert find_reference([GAUSSIAN, shuffled, REFERENCE, second]) == REFERENCE
    with pytest.raises(LupiError, match=r"gaussian-dropout, het-dropout: add one .*'no-xstar'"):
        find_reference([GAUSSIAN, REAL])


def test_a_candidate_is_held_against_every_control_of_its_own() -> None:
    tuned = Arm("gaussian-tuned", "gaussian-dropout")
    foreign = Arm("distill/shuffled", "distill", control="shuffled", uses_xstar=True)
    wide = Arm("het-wide", "het-dropout", uses_xstar=True)
    wide_shuffled = Arm("het-wide/shuffled", "het-dropout", control="shuffled", uses_xstar=True)
    arms = [*ARMS, tuned, foreign, wide, wide_shuffled]
    assert controls(REAL, arms) == [REFERENCE, GAUSSIAN, tuned, SHUFFLED]
    assert controls(wide, arms) == [REFERENCE, GAUSSIAN, tuned, wide_shuffled]


def test_other_arms_are_held_against_the_reference_alone() -> None:
    for arm in (GAUSSIAN, SHUFFLED, ORACLE):
        assert controls(arm, ARMS) == [REFERENCE]
    assert controls(REFERENCE, ARMS) == []


@pytest.mark.parametrize(
    ("gains", "word"),
    [
        ({"plain": 0.1, "noise": 0.05}, "helps"),
        ({"plain": -0.1, "noise": -0.05}, "hurts"),
        ({"plain": 0.1, "noise": -0.05}, "worse than a control"),
        ({"plain": -0.1, "noise": 0.05}, "worse than a control"),
        ({"plain": 0.1, "noise": 0.0}, "better than plain only"),
        ({"plain": 0.0, "noise": 0.1}, "no detectable difference"),
        ({"plain": 0.0, "noise": 0.0005}, "practically the same"),
    ],
)
def test_every_outcome_has_its_word(gains: Mapping[str, float], word: Verdict) -> None:
    """An arm that beat the plain one and lost to noise was "no detectable difference"; one that
    lost to the plain one alone was "hurts"."""
    assert words(question(gains)) == [word]


def test_other_arms_are_better_or_worse_and_never_help() -> None:
    """A linear model without x* was said to "help", gradient boosting to "hurt"."""
    found = words(*(question({"plain": g}, about_xstar=False) for g in (0.1, -0.1, 0.0)))
    assert found == ["better than plain", "worse than plain", "practically the same"]


def test_the_margin_decides_what_is_practically_the_same() -> None:
    gains = {"plain": 0.0, "noise": 0.0}
    assert words(question(gains, margin=0.005)) == ["practically the same"]
    assert words(question(gains, margin=0.001)) == ["no detectable difference"]


def test_a_lacking_control_is_no_beaten_control() -> None:
    assert words(question({"plain": 0.1}, n_controls=2)) == ["underpowered"]
    assert words(question({}, n_controls=1)) == ["underpowered"]


def test_collapsed_comes_before_everything() -> None:
    for gain in (0.1, -0.1, 0.0):
        assert words(question({"plain": gain}, collapsed=True)) == ["collapsed"]


def test_underpowered_when_no_outcome_could_have_been_a_verdict() -> None:
    assert words(question({"plain": 0.1}, n_seeds=5)) == ["underpowered"]
    assert words(question({"plain": 0.1}, n_seeds=6)) == ["helps"]


def test_clear_answers_cost_each_other_nothing_and_unclear_ones_do() -> None:
    clear, unclear = question({"plain": 0.1}, n_seeds=6), question({"plain": 0.0}, n_seeds=6)
    assert words(clear, clear, clear) == ["helps"] * 3
    # Beside two unclear ones six seeds reach 2 * 3 / 64 / 0.8 = 0.12, eight reach 0.03.
    assert words(clear, unclear, unclear)[0] == "no detectable difference"
    assert words(question({"plain": 0.1}), unclear, unclear)[0] == "helps"


@pytest.mark.parametrize(("n_questions", "n_seeds"), [(1, 6), (2, 7), (3, 8), (15, 10)])
def test_seeds_needed(n_questions: int, n_seeds: int) -> None:
    assert seeds_needed(n_questions, SHARE) == n_seeds


def test_numbers_agree_with_the_word() -> None:
    """The mean and the interval came from one control, and the p-value from another."""
    (judged,) = judge(question({"plain": 0.1, "noise": 0.0}))
    assert judged.strongest == "noise"
    by_control = {difference.other: difference for difference in judged.differences}
    assert by_control["plain"].interval[0] > 0  # type: ignore[operator]
    assert by_control["plain"].p_value < 0.05
    low, high = by_control["noise"].interval
    assert low <= 0 <= high  # type: ignore[operator]
    assert by_control["noise"].p_value > 0.05


def simulated(rng: np.random.Generator, gains: Sequence[float], n_seeds: int = 8) -> Question:
    """An arm that is truly better by `gains`, in standard deviations of one run."""
    arm = rng.normal(size=n_seeds)
    looks = Looks((n_seeds,)).reached(n_seeds)
    tests = {
        str(k): SequentialTest(arm - rng.normal(size=n_seeds) + gain, looks)
        for k, gain in enumerate(gains)
    }
    return Question(tests, len(tests), margin=0.01)


def test_no_interval_contradicts_its_p_value_or_the_word() -> None:
    rng = np.random.default_rng(4)
    for _ in range(200):
        family = [simulated(rng, rng.choice([-2, 0, 2], size=3).tolist()) for _ in range(3)]
        for judged in judge(*family):
            lows = [d.interval[0] for d in judged.differences]
            highs = [d.interval[1] for d in judged.differences]
            for difference, low, high in zip(judged.differences, lows, highs, strict=True):
                excludes_zero = (low is not None and low > 0) or (high is not None and high < 0)
                assert excludes_zero == (difference.p_value <= 0.05)
            assert (judged.verdict == "helps") == all(low is not None and low > 0 for low in lows)
            assert (judged.verdict == "hurts") == all(
                high is not None and high < 0 for high in highs
            )


def test_without_an_effect_at_most_one_comparison_in_twenty_has_a_wrong_word() -> None:
    rng = np.random.default_rng(0)
    n_trials = 1500
    quiet = {"no detectable difference", "practically the same", "underpowered"}
    wrong = sum(
        not quiet.issuperset(words(*(simulated(rng, [0.0]) for _ in range(3))))
        for _ in range(n_trials)
    )
    slack = 3 * np.sqrt(0.05 * 0.95 / n_trials)
    assert 0.01 < wrong / n_trials <= 0.05 + slack  # 0: the simulation would test nothing


def test_noise_that_helps_as_much_gives_no_credit_to_xstar() -> None:
    rng = np.random.default_rng(1)
    n_trials = 600
    wrong = sum("helps" in words(simulated(rng, [5.0, 0.0])) for _ in range(n_trials))
    assert 0 < wrong / n_trials <= 0.025 + 3 * np.sqrt(0.025 * 0.975 / n_trials)


def test_picking_the_best_of_five_arms_makes_no_winner_of_chance() -> None:
    """The headline told of the best of several arms, each tested as if it were the only one."""
    rng = np.random.default_rng(5)
    n_trials = 600
    wrong = sum(
        "helps" in words(*(simulated(rng, [0.0]) for _ in range(5))) for _ in range(n_trials)
    )
    assert wrong / n_trials <= 0.025 + 3 * np.sqrt(0.025 * 0.975 / n_trials)


def test_a_large_effect_is_found_at_every_size() -> None:
    rng = np.random.default_rng(2)
    found = [w for _ in range(30) for w in words(*(simulated(rng, [5.0, 5.0]) for _ in range(3)))]
    assert found.count("helps") / len(found) > 0.9
    hurt = [w for _ in range(30) for w in words(*(simulated(rng, [-5.0]) for _ in range(3)))]
    assert hurt.count("hurts") / len(hurt) > 0.9
