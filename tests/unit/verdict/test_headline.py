from dataclasses import replace
from typing import Any

import pytest

from lupi.records import Design, Metric
from lupi.verdict.summary import summarise

from .comparisons import around, comparison, result


def headline(results: dict[str, Any], metric: Metric | None = None) -> str:
    return summarise(comparison(results, metric)).headline


def curves(real: dict[int, list[float]]) -> dict[str, Any]:
    """A comparison with reference and noise, and these scores of real x*."""
    return {
        "no-xstar": {75: around(0.5), 150: around(0.6), 300: around(0.7)},
        "gaussian-dropout": {75: around(0.52), 150: around(0.62), 300: around(0.71)},
        "het-dropout": real,
    }


def test_helps() -> None:
    real = {75: around(0.6, own=True), 150: around(0.69, own=True), 300: around(0.71, own=True)}
    assert headline(curves(real)) == (
        "x* helps het-dropout at 2 of 3 sizes: +7.0 points of accuracy over the strongest control "
        "(gaussian-dropout) at n = 150, 95 % interval +6.8 to +7.1, p = 0.02; "
        "the plain model needs 1.9x the labels (1.8x to 1.9x); "
        "gaussian-dropout needs 1.7x the labels (1.7x to 1.8x); "
        "better than plain only at n = 300."
    )


def test_hurts_is_not_hidden_behind_helps() -> None:
    real = {75: around(0.4), 150: around(0.69), 300: around(0.8)}
    assert headline(curves(real)) == (
        "x* helps het-dropout at 2 of 3 sizes: +9.0 points of accuracy over the strongest control "
        "(gaussian-dropout) at n = 300, 95 % interval +8.7 to +9.3, p = 0.02; "
        "neither the plain model nor gaussian-dropout reaches this score at a measured size; "
        "hurts at n = 75."
    )


def test_hurts_tells_of_the_control_that_is_closest() -> None:
    real = {75: around(0.4), 150: around(0.5), 300: around(0.6)}
    assert headline(curves(real)) == (
        "x* hurts het-dropout at 3 of 3 sizes: -10.0 points of accuracy against the closest "
        "control (no-xstar) at n = 300, 95 % interval -10.2 to -9.8, p = 0.0098."
    )


def test_an_arm_that_loses_to_noise_is_worse_than_a_control() -> None:
    """It was "No detectable difference ... 95 % interval -10.0 to -1.5, p = 0.56"."""
    results = {
        "no-xstar": {75: around(0.5)},
        "gaussian-dropout": {75: around(0.6)},
        "het-dropout": {75: around(0.55)},
    }
    assert headline(results) == (
        "het-dropout is worse than a control: -5.0 points of accuracy against gaussian-dropout "
        "at n = 75, 95 % interval -5.2 to -4.8, p = 0.02."
    )


def test_a_gain_over_the_plain_model_alone_is_no_credit() -> None:
    real = {n: around(score, own=True) for n, score in ((75, 0.52), (150, 0.62), (300, 0.71))}
    assert headline(curves(real)) == (
        "het-dropout is better than the plain model at 3 of 3 sizes, but x* gets no credit: "
        "+0.0 points of accuracy against the strongest control (gaussian-dropout) at n = 300, "
        "95 % interval -0.3 to +0.3, p = 1."
    )


def test_practically_the_same_names_the_margin() -> None:
    results = {"no-xstar": {75: around(0.5)}, "het-dropout": {75: around(0.5, own=True)}}
    assert headline(results) == (
        "x* makes practically no difference to het-dropout: +0.0 points of accuracy against "
        "no-xstar at n = 75, 95 % interval -0.2 to +0.2, within the margin of 1.0 points of "
        "accuracy, p = 1."
    )


def test_no_detectable_difference() -> None:
    wide = [0.45, 0.56, 0.48, 0.53, 0.44, 0.58, 0.5, 0.47]
    results = {"no-xstar": {75: around(0.5)}, "het-dropout": {75: wide}}
    assert headline(results).startswith(
        "No detectable difference for het-dropout: +0.1 points of accuracy against the strongest "
        "control (no-xstar) at n = 75, 95 % interval -3"
    )


def test_at_the_whole_pool_it_speaks_of_this_training_set() -> None:
    results = {"no-xstar": {75: around(0.5)}, "het-dropout": {75: around(0.6)}}
    record = replace(comparison(results), design=Design(75, "fixed", n_test=200))
    assert summarise(record).headline.endswith(
        "; true of this training set, measured on one fixed set of 200 test rows."
    )


def test_underpowered_says_how_many_seeds_it_takes() -> None:
    results = {
        "no-xstar": {75: around(0.5, 4), 150: around(0.6, 4)},
        "het-dropout": {75: around(0.6, 4), 150: around(0.7, 4)},
    }
    assert headline(results) == (
        "Too few seeds to judge het-dropout: 7 are enough for any of the 2 questions "
        "(arms x sizes), 6 if all answers are clear."
    )


def test_seeds_that_change_nothing_give_no_verdict() -> None:
    """Eight seeds with the same two scores, and no spread at all, were a "helps"."""
    results = {"no-xstar": {75: [0.5] * 8}, "het-dropout": {75: [0.6] * 8}}
    summary = summarise(comparison(results))
    assert summary.headline.startswith("Too few seeds to judge het-dropout")
    assert any(w.startswith("identical scores for all seeds: ") for w in summary.warnings)


def test_collapsed() -> None:
    results: dict[str, Any] = {
        "no-xstar": {75: around(0.5)},
        "het-dropout": {75: [result(score, collapsed=True) for score in around(0.9)]},
    }
    assert headline(results) == (
        "het-dropout collapsed: its noise no longer depends on x*, "
        "so its score says nothing about x*."
    )


def test_nothing_finished_yet() -> None:
    results = {"no-xstar": {75: [None] * 8}, "het-dropout": {75: [None] * 8}}
    assert headline(results) == ("No verdict yet: none of the 16 planned runs has a score.")


def test_an_oracle_is_never_the_winner() -> None:
    results = {"no-xstar": {75: around(0.5)}, "oracle": {75: around(0.9)}}
    assert headline(results) == (
        "This comparison can't say whether x* helps: "
        "none of its arms trains with the real x* and predicts without it."
    )
    results |= {"het-dropout": {75: around(0.5)}}
    assert headline(results).startswith("x* makes practically no difference to het-dropout")


def test_several_methods_are_counted() -> None:
    results = {
        "no-xstar": {75: around(0.5)},
        "het-dropout": {75: around(0.5)},
        "distillation": {75: around(0.6)},
    }
    assert headline(results).startswith(
        "x* helps distillation (1 of 2 arms with this verdict): +10.0 points"
    )


def test_an_empty_comparison_has_a_headline() -> None:
    assert headline({"no-xstar": {}, "het-dropout": {}}).startswith("No verdict yet")


@pytest.mark.parametrize(
    ("metric", "amount"),
    [
        (Metric("accuracy"), "+10.0 points of accuracy over"),
        (Metric("top-5"), "+10.0 points of top-5 over"),
        (Metric("bleu"), "+0.1 in bleu over"),
    ],
)
def test_units(metric: Metric, amount: str) -> None:
    results = {"no-xstar": {75: around(0.5)}, "het-dropout": {75: around(0.6)}}
    assert amount in headline(results, metric)


def test_scores_of_translations_have_one_decimal() -> None:
    results = {"no-xstar": {75: around(35.5)}, "het-dropout": {75: around(38.43)}}
    assert ": +2.9 in bleu over" in headline(results, Metric("bleu"))


def test_lower_is_better_is_said() -> None:
    results = {"no-xstar": {75: around(1.5)}, "het-dropout": {75: around(1.25)}}
    text = headline(results, Metric("loss", higher_is_better=False))
    assert "x* helps het-dropout: +0.25 in loss (+ is better) over" in text
