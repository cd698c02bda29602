from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from lupi.design import Looks
from lupi.errors import LupiError
from lupi.records import Arm
from lupi.verdict.results import Answer, Verdict
from lupi.verdict.roles import controls, find_reference
from lupi.verdict.rule import Question, judge_family

from .comparisons import ARMS

REFERENCE, GAUSSIAN, REAL, SHUFFLED, _, ORACLE = ARMS
WIGGLE = np.array([0.002, -0.001, 0.003, 0.001, -0.002, 0.0005, -0.003, 0.0015, 0.001, -0.0015])


def question(
    gains: Mapping[str, float],
    n_seeds: int = 8,
    margin: float = 0.01,
    about_xstar: bool = True,
    collapsed: bool = False,
    absent: Sequence[str] = (),
) -> Question:
    """An arm that is better than each control by so much, give or take little."""
    differences = {name: gain + WIGGLE[:n_seeds] for name, gain in gains.items()}
    return Question(
        (*gains, *absent), differences, margin, about_xstar=about_xstar, collapsed=collapsed
    )


def judge(*questions: Question) -> list[Answer]:
    n_seeds = max(len(row) for q in questions for row in q.differences.values())
    return judge_family(questions, Looks((n_seeds,)).reached(n_seeds))


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


def test_an_absent_control_is_a_control_not_beaten() -> None:
    """A shuffled control without rows at a size was dropped: "better than every control"."""
    (judged,) = judge(question({"plain": 0.1}, absent=["shuffled"]))
    assert judged.verdict == "better than plain only"
    assert judged.absent == ("shuffled",)
    assert judged.reason == "no common seed with shuffled"
    (judged,) = judge(question({"plain": 0.0}, absent=["shuffled"]))
    assert judged.verdict == "no detectable difference"


def test_without_the_reference_nothing_is_compared() -> None:
    noise = Question(("plain", "noise"), {"noise": 0.1 + WIGGLE}, margin=0.01)
    (judged,) = judge(noise)
    assert (judged.verdict, judged.reason) == ("not compared", "no common seed with plain")


@pytest.mark.parametrize(
    ("gains", "deciding"),
    [
        ({"plain": 0.01, "noise": 0.07}, "plain"),  # helps: the smallest gain
        ({"plain": -0.01, "noise": -0.07}, "plain"),  # hurts: the smallest loss
        ({"plain": 0.1, "noise": -0.001, "shuffled": -0.05}, "shuffled"),  # the clearest loss
        ({"plain": 0.1, "noise": 0.0, "shuffled": 0.05}, "noise"),  # the one that is not beaten
        ({"plain": 0.0, "noise": 0.0005}, "noise"),  # practically the same: the largest
    ],
)
def test_the_claim_names_its_control(gains: Mapping[str, float], deciding: str) -> None:
    """The control with the largest p was named: "+6.9 points over noise" at a gain of 1.0."""
    (judged,) = judge(question(gains))
    assert judged.deciding_control == deciding


def test_six_of_six_seeds_ahead_is_undecided_and_says_what_would_settle_it() -> None:
    """It was "no detectable difference"."""
    rng = np.random.default_rng(3)
    weak = Question(("plain",), {"plain": np.abs(rng.normal(size=6))}, margin=0.01)
    # A clear difference of the opposite sign keeps the other from being claimed.
    rivals = [
        Question(("plain",), {"plain": -1 - 0.01 * rng.random(6)}, margin=0.01) for _ in range(3)
    ]
    judged = judge(weak, *rivals)[0]
    assert judged.verdict == "undecided"
    assert judged.outlook is not None
    assert judged.outlook.leaning == "yes"
    assert judged.outlook.more_seeds is not None


def test_too_few_seeds_say_how_many_would_do_and_where_they_lean() -> None:
    (judged,) = judge(question({"plain": 0.1}, n_seeds=5))
    assert judged.verdict == "underpowered"
    assert judged.reason == "5 common seeds; a claim needs at least 6"
    assert judged.outlook is not None
    assert (judged.outlook.leaning, judged.outlook.more_seeds) == ("yes", 1)
    (judged,) = judge(question({"plain": -0.1}, n_seeds=5))
    assert judged.outlook is not None
    assert judged.outlook.leaning == "no"


def test_identical_differences_are_given_as_the_reason() -> None:
    (judged,) = judge(Question(("plain",), {"plain": np.full(8, 0.1)}, margin=0.01))
    assert judged.verdict == "underpowered"
    assert judged.reason == "the difference from plain is identical for all seeds"


def test_differences_that_are_mostly_zero_are_not_equivalence() -> None:
    """Equal in 90 % of seeds and a failure in 10 %: "practically the same, +0.0 to +0.0"."""
    zeros = np.zeros(8)
    (judged,) = judge(Question(("plain",), {"plain": zeros}, margin=0.01))
    assert judged.verdict == "no detectable difference"
    assert judged.reason == "exactly the score of plain in 8 of 8 seeds"


def test_the_order_of_arrival_decides_what_a_look_sees() -> None:
    late = np.r_[0.1 + WIGGLE[:8], [-0.5, -0.5]]
    looks = Looks((8, 10)).reached(8)
    assert judge_family([Question(("p",), {"p": late}, 0.01)], looks)[0].verdict == "helps"
    early = late[::-1].copy()
    assert judge_family([Question(("p",), {"p": early}, 0.01)], looks)[0].verdict != "helps"


def test_collapsed_comes_before_everything() -> None:
    for gain in (0.1, -0.1, 0.0):
        assert words(question({"plain": gain}, collapsed=True)) == ["collapsed"]


def test_underpowered_exactly_when_no_outcome_could_have_been_a_claim() -> None:
    assert words(question({"plain": 0.1}, n_seeds=5)) == ["underpowered"]
    assert words(question({"plain": 0.1}, n_seeds=6)) == ["helps"]
    unclear = [question({"plain": 0.0}, n_seeds=6) for _ in range(9)]
    assert words(question({"plain": 0.1}, n_seeds=6), *unclear)[0] == "helps"


def test_numbers_agree_with_the_word() -> None:
    """The mean and the interval came from one control, and the p-value from another."""
    (judged,) = judge(question({"plain": 0.1, "noise": 0.0}))
    assert judged.deciding_control == "noise"
    by_control = {difference.other: difference for difference in judged.differences}
    assert by_control["plain"].interval[0] > 0  # type: ignore[operator]
    assert by_control["plain"].p_value < 0.05
    low, high = by_control["noise"].interval
    assert low <= 0 <= high  # type: ignore[operator]
    assert by_control["noise"].p_value > 0.05


def simulated(rng: np.random.Generator, gains: Sequence[float], n_seeds: int = 8) -> Question:
    """An arm that is truly better by `gains`, in standard deviations of one run."""
    arm = rng.normal(size=n_seeds)
    rows = {str(k): arm - rng.normal(size=n_seeds) + gain for k, gain in enumerate(gains)}
    return Question(tuple(rows), rows, margin=0.01)


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
    quiet = {"no detectable difference", "undecided", "practically the same", "underpowered"}
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
