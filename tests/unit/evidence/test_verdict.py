from collections.abc import Mapping

import numpy as np
import pytest
from scipy import stats

from lupi.errors import LupiError
from lupi.evidence.answer import Difference, Word
from lupi.evidence.paired import sign_flip_p
from lupi.evidence.verdict import Grounds, controls, find_reference, judge, seeds_needed
from lupi.records import Arm

from .comparisons import ARMS

REFERENCE, GAUSSIAN, REAL, SHUFFLED, _, ORACLE = ARMS


def grounds(
    p_by_control: Mapping[str, float], n_pairs: int = 8, gain: float = 0.1, collapsed: bool = False
) -> Grounds:
    differences = tuple(Difference(name, gain, None, p) for name, p in p_by_control.items())
    return Grounds(differences, n_pairs, collapsed)


def words(*at: Grounds) -> list[Word]:
    return [word for word, _ in judge(at, "no-xstar")]


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


def test_helps_needs_the_weakest_comparison_to_be_significant() -> None:
    strong = {"no-xstar": 0.01, "gaussian-dropout": 0.02}
    assert judge([grounds(strong)], "no-xstar") == [("helps", 0.02)]
    weak = strong | {"gaussian-dropout": 0.3}
    assert judge([grounds(weak)], "no-xstar") == [("no detectable difference", 0.3)]


def test_helps_needs_every_difference_to_be_positive() -> None:
    better = Difference("no-xstar", 0.1, None, 0.01)
    worse = Difference("gaussian-dropout", -0.1, None, 0.01)
    assert words(Grounds((better, worse), 8)) == ["no detectable difference"]


def test_p_is_corrected_over_sizes() -> None:
    # Sorted 0.01 0.02 0.04 times 3 2 1: 0.03 0.04 0.04; alone, 0.03 and 0.02 would do too.
    at = [grounds({"no-xstar": p}) for p in (0.04, 0.01, 0.02)]
    assert [p for _, p in judge(at, "no-xstar")] == pytest.approx([0.04, 0.03, 0.04])
    at = [grounds({"no-xstar": p}) for p in (0.03, 0.2, 0.9)]
    assert words(*at) == ["no detectable difference"] * 3


def test_hurts_looks_at_the_reference_alone() -> None:
    worse = Difference("no-xstar", -0.1, None, 0.01)
    unclear = Difference("gaussian-dropout", 0.01, None, 0.8)
    assert judge([Grounds((worse, unclear), 8)], "no-xstar") == [("hurts", 0.01)]
    assert words(Grounds((Difference("gaussian-dropout", -0.1, None, 0.01),), 8)) == [
        "no detectable difference"
    ]


def test_underpowered_when_no_outcome_could_have_been_significant() -> None:
    assert words(grounds({"no-xstar": 2 / 32}, n_pairs=5)) == ["underpowered"]
    assert words(grounds({"no-xstar": 2 / 64}, n_pairs=6)) == ["helps"]
    # Over three sizes six seeds reach 3 * 2 / 64 = 0.094, seven reach 0.047.
    assert words(*[grounds({"no-xstar": 2 / 64}, n_pairs=6)] * 3) == ["underpowered"] * 3
    assert words(*[grounds({"no-xstar": 2 / 128}, n_pairs=7)] * 3) == ["helps"] * 3


def test_a_lacking_control_is_no_beaten_control() -> None:
    lacking = grounds({"no-xstar": 0.001}, n_pairs=0)
    assert judge([lacking], "no-xstar") == [("underpowered", None)]


def test_an_unfinished_size_makes_no_other_size_easier() -> None:
    unfinished = Grounds((), 0)
    assert words(grounds({"no-xstar": 0.03}), unfinished) == [
        "no detectable difference",
        "underpowered",
    ]


def test_collapsed_comes_before_everything() -> None:
    assert words(grounds({"no-xstar": 0.001}, collapsed=True)) == ["collapsed"]
    assert words(grounds({"no-xstar": 0.001}, gain=-0.1, collapsed=True)) == ["collapsed"]
    assert words(grounds({}, n_pairs=0, collapsed=True)) == ["collapsed"]


@pytest.mark.parametrize(("n_sizes", "n_seeds"), [(1, 6), (2, 7), (3, 7), (4, 8)])
def test_seeds_needed(n_sizes: int, n_seeds: int) -> None:
    assert seeds_needed(n_sizes) == n_seeds


def simulate(
    rng: np.random.Generator, gains: Mapping[str, float], n_sizes: int, n_seeds: int = 8
) -> list[Word]:
    """Verdicts on an arm that is truly better by `gains`, in standard deviations of one run."""
    at = []
    for _ in range(n_sizes):
        arm = rng.normal(size=n_seeds)
        differences = []
        for control, gain in gains.items():
            paired = arm - rng.normal(size=n_seeds) + gain
            differences.append(Difference(control, paired.mean(), None, sign_flip_p(paired)))
        at.append(Grounds(tuple(differences), n_seeds))
    return words(*at)


def test_without_an_effect_at_most_one_comparison_in_twenty_has_a_verdict() -> None:
    rng = np.random.default_rng(0)
    n_trials = 4000
    wrong = sum(
        any(word in ("helps", "hurts") for word in simulate(rng, {"no-xstar": 0.0}, n_sizes=3))
        for _ in range(n_trials)
    )
    slack = 3 * np.sqrt(0.05 * 0.95 / n_trials)
    assert 0.01 < wrong / n_trials <= 0.05 + slack  # 0: the simulation would test nothing


def test_noise_that_helps_as_much_gives_no_credit_to_xstar() -> None:
    rng = np.random.default_rng(1)
    gains = {"no-xstar": 5.0, "gaussian-dropout": 0.0}
    n_trials = 500
    wrong = sum("helps" in simulate(rng, gains, n_sizes=1) for _ in range(n_trials))
    slack = 3 * np.sqrt(0.05 * 0.95 / n_trials)
    assert 0 < wrong / n_trials <= 0.05 + slack


def test_a_large_effect_is_found_at_every_size() -> None:
    rng = np.random.default_rng(2)
    gains = {"no-xstar": 5.0, "gaussian-dropout": 5.0}
    found = [word for _ in range(30) for word in simulate(rng, gains, n_sizes=3)]
    assert found.count("helps") / len(found) > 0.9
    hurt = [word for _ in range(30) for word in simulate(rng, {"no-xstar": -5.0}, n_sizes=3)]
    assert hurt.count("hurts") / len(hurt) > 0.9


@pytest.mark.parametrize("effect", [0.5, 1.0, 1.5])
def test_power_is_that_of_a_paired_t_test(effect: float) -> None:
    """The effect is in standard deviations of a paired difference; 8 seeds, one size."""
    rng = np.random.default_rng(3)
    n_seeds, n_trials = 8, 2000
    n_found = 0
    for _ in range(n_trials):
        paired = rng.normal(effect, 1.0, size=n_seeds)
        difference = Difference("no-xstar", paired.mean(), None, sign_flip_p(paired))
        n_found += words(Grounds((difference,), n_seeds)) == ["helps"]
    needed = stats.t.ppf(0.975, n_seeds - 1)
    expected = stats.nct.sf(needed, n_seeds - 1, effect * np.sqrt(n_seeds))
    assert n_found / n_trials == pytest.approx(expected, abs=0.05)


def test_sizes_where_the_arm_is_behind_do_not_ease_the_test_of_the_others() -> None:
    """p = 0.03 is significant alone, but not beside a size that speaks against the arm."""

    def at(mean: float, p_value: float) -> Grounds:
        return Grounds((Difference("no-xstar", mean, None, p_value),), n_pairs=8)

    assert judge([at(0.1, 0.03)], "no-xstar")[0][0] == "helps"
    assert judge([at(0.1, 0.03), at(0.1, 0.01)], "no-xstar")[0][0] == "helps"
    assert judge([at(0.1, 0.03), at(-0.1, 0.01)], "no-xstar")[0][0] != "helps"
