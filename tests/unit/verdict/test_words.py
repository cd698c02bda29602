import random
from dataclasses import replace
from typing import Any

import pytest

from lupi.records import Design, Looks, Metric
from lupi.verdict.summary import summarise

from .comparisons import around, comparison, result


def exact(results: dict[str, Any], metric: Metric | None = None) -> str:
    return summarise(comparison(results, metric)).statement.exact


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
    words = summarise(comparison(curves(real))).statement
    assert words.headline.startswith(
        "With 150 training rows, x* (het-dropout) raises accuracy from 60.0 % to 69.0 %. No control"
    )
    assert words.advice == "Recommended: use het-dropout."
    assert words.exact.startswith("x* helps het-dropout at 2 of 3 sizes: +7.0 points of accuracy")
    for part in ("(gaussian-dropout) at n = 150", "8 seeds", "better than plain only at n = 300."):
        assert part in words.exact


def test_hurts_is_not_hidden_behind_helps() -> None:
    real = {75: around(0.4), 150: around(0.69), 300: around(0.8)}
    assert "It hurts at n = 75." in headline(curves(real))
    assert exact(curves(real)).endswith("; hurts at n = 75.")


def test_hurts_tells_of_the_control_that_is_closest() -> None:
    real = {75: around(0.4), 150: around(0.5), 300: around(0.6)}
    assert exact(curves(real)).startswith(
        "x* hurts het-dropout at 3 of 3 sizes: -10.0 points of accuracy against the closest "
        "control (no-xstar) at n = 300"
    )
    assert headline(curves(real)).endswith("Recommended: use no-xstar.")


def test_an_arm_that_loses_to_noise_is_worse_than_a_control() -> None:
    """It was "No detectable difference ... 95 % interval -10.0 to -1.5, p = 0.56"."""
    results = {
        "no-xstar": {75: around(0.5)},
        "gaussian-dropout": {75: around(0.6)},
        "het-dropout": {75: around(0.55)},
    }
    assert exact(results).startswith(
        "het-dropout is worse than a control: -5.0 points of accuracy against gaussian-dropout "
    )
    assert "do not use het-dropout; gaussian-dropout is better" in headline(results)


def test_a_gain_over_the_plain_model_alone_is_no_credit() -> None:
    real = {n: around(score, own=True) for n, score in ((75, 0.52), (150, 0.62), (300, 0.71))}
    assert "but x* gets no credit: a control may be as good" in headline(curves(real))
    assert "(gaussian-dropout) at n = 300" in exact(curves(real))


def test_practically_the_same_names_the_margin() -> None:
    results = {"no-xstar": {75: around(0.5)}, "het-dropout": {75: around(0.5, own=True)}}
    assert "within the margin of 1.0 points of accuracy" in exact(results)
    assert headline(results).endswith("Recommended: use no-xstar if that is simpler.")


def test_no_detectable_difference_is_not_no_difference() -> None:
    wide = [0.45, 0.56, 0.48, 0.53, 0.44, 0.58, 0.5, 0.47]
    results = {"no-xstar": {75: around(0.5)}, "het-dropout": {75: wide}}
    assert exact(results).startswith("No detectable difference for het-dropout: ")
    assert "This does not mean that there is none" in headline(results)


def test_a_lean_is_said_and_what_would_settle_it() -> None:
    lead = [0.001, 0.03, 0.002, 0.04, 0.0015, 0.05, -0.004, 0.03]
    plain = around(0.5)
    ours = [score + more for score, more in zip(plain, lead, strict=True)]
    found = summarise(comparison({"no-xstar": {75: plain}, "het-dropout": {75: ours}}))
    text = f"{found.headline} {found.statement.exact}"
    assert "it is undecided whether x* (het-dropout) helps, leaning yes" in text
    assert "more seed" in found.statement.advice
    document = found.to_dict()["arms"][1]["cells"][0]
    assert document["verdict"] == "undecided"
    assert document["outlook"]["leaning"] == "yes"
    assert document["outlook"]["more_seeds"] >= 1


def test_the_mean_over_sizes_is_told_if_no_size_alone_decides() -> None:
    rng = random.Random(3)
    results: dict[str, Any] = {"no-xstar": {}, "het-dropout": {}}
    for size in (75, 150, 300, 600):
        results["no-xstar"][size] = [0.5 + rng.gauss(0, 0.02) for _ in range(8)]
        results["het-dropout"][size] = [0.518 + rng.gauss(0, 0.02) for _ in range(8)]
    found = summarise(comparison(results))
    overall = found.arms[1].overall
    assert overall is not None
    assert overall.verdict == "helps"
    assert all(cell.verdict != "helps" for cell in found.arms[1].cells)
    assert found.headline.startswith("On average over n = 75, 150, 300, 600, x* (het-dropout)")


def test_at_the_whole_pool_it_speaks_of_this_training_set() -> None:
    results = {"no-xstar": {75: around(0.5)}, "het-dropout": {75: around(0.6)}}
    record = replace(comparison(results), design=Design(75, "fixed", n_test=200))
    assert summarise(record).statement.exact.endswith(
        "; holds for this training set, measured on one fixed set of 200 test rows only."
    )


def test_underpowered_says_how_many_seeds_it_takes() -> None:
    results = {
        "no-xstar": {75: around(0.5, 4), 150: around(0.6, 4)},
        "het-dropout": {75: around(0.6, 4), 150: around(0.7, 4)},
    }
    text = headline(results)
    assert "4 common seeds; a claim needs at least 6" in text
    assert "2 more seeds can settle it" in text


def test_seeds_that_change_nothing_give_no_verdict() -> None:
    """Eight seeds with the same two scores, and no spread at all, were a "helps"."""
    results = {"no-xstar": {75: [0.5] * 8}, "het-dropout": {75: [0.6] * 8}}
    summary = summarise(comparison(results))
    assert "the difference from no-xstar is identical for all seeds" in summary.headline
    assert any(w.startswith("identical scores for all seeds: ") for w in summary.warnings)


def test_collapsed() -> None:
    results: dict[str, Any] = {
        "no-xstar": {75: around(0.5)},
        "het-dropout": {75: [result(score, collapsed=True) for score in around(0.9)]},
    }
    assert "het-dropout collapsed: it no longer depends on x*" in headline(results)


def test_unfinished_runs_make_it_preliminary() -> None:
    results: dict[str, Any] = {
        "no-xstar": {75: [*around(0.5, 7), None]},
        "het-dropout": {75: around(0.6)},
    }
    words = summarise(comparison(results)).statement
    assert words.headline.startswith("Preliminary (15 of 16 runs). With 75 training rows, x*")
    assert words.advice == "Wait for the planned runs before you decide."


def test_a_failed_run_is_not_waited_for() -> None:
    results: dict[str, Any] = {
        "no-xstar": {75: [*around(0.5, 7), None]},
        "het-dropout": {75: around(0.6)},
    }
    record = comparison(results)
    runs = [replace(r, failure="Error") if r.result is None else r for r in record.runs]
    assert summarise(replace(record, runs=runs)).headline.startswith("With 75 training rows")


def test_nothing_finished_yet() -> None:
    results = {"no-xstar": {75: [None] * 8}, "het-dropout": {75: [None] * 8}}
    assert headline(results).startswith("No verdict yet")


def test_an_oracle_is_never_the_winner() -> None:
    results = {"no-xstar": {75: around(0.5)}, "oracle": {75: around(0.9)}}
    assert headline(results).startswith("This comparison can't say whether x* helps")
    results |= {"het-dropout": {75: around(0.5, own=True)}}
    assert exact(results).startswith("x* makes practically no difference to het-dropout")


def test_several_methods_are_counted_and_the_best_of_them_is_not_believed_blindly() -> None:
    results = {
        "no-xstar": {75: around(0.5)},
        "het-dropout": {75: around(0.5, own=True)},
        "distillation": {75: around(0.6)},
    }
    words = summarise(comparison(results)).statement
    assert words.exact.startswith("x* helps distillation (1 of 2 arms with this verdict): +10.0")
    assert any("chosen among 2 arms" in note and "fresh seeds" in note for note in words.notes)


def test_a_gain_found_by_looking_early_is_said_to_be_overstated() -> None:
    results = {"no-xstar": {75: around(0.5)}, "het-dropout": {75: around(0.6)}}
    record = replace(comparison(results), looks=Looks((6, 8)))
    notes = summarise(record).statement.notes
    assert any("could stop as soon as it was decided" in note for note in notes)
    assert not any("overstated" in n for n in summarise(comparison(results)).statement.notes)


def test_failures_that_clean_seeds_can_not_exclude_are_said() -> None:
    results = {"no-xstar": {75: around(0.5)}, "het-dropout": {75: around(0.6)}}
    (note,) = summarise(comparison(results)).statement.notes
    assert "8 seeds" in note
    assert "31 %" in note


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
    assert amount in exact(results, metric)


def test_scores_of_translations_have_one_decimal() -> None:
    results = {"no-xstar": {75: around(35.5)}, "het-dropout": {75: around(38.43)}}
    assert ": +2.9 in bleu over" in exact(results, Metric("bleu"))


def test_lower_is_better_is_said() -> None:
    results = {"no-xstar": {75: around(1.5)}, "het-dropout": {75: around(1.25)}}
    text = exact(results, Metric("loss", higher_is_better=False))
    assert "x* helps het-dropout: +0.250 in loss (+ is better) over" in text
