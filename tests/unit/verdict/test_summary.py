import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lupi.errors import LupiError
from lupi.records import Metric
from lupi.verdict.results import Verdict
from lupi.verdict.summary import summarise

from .comparisons import Results, around, cell, comparison, result


def three_arms(plain: float, noise: float, real: float, n_seeds: int = 8) -> dict[str, Any]:
    """Reference, Gaussian noise and real x* at one size."""
    return {
        "no-xstar": {75: around(plain, n_seeds)},
        "gaussian-dropout": {75: around(noise, n_seeds)},
        "het-dropout": {75: around(real, n_seeds, own=True)},
    }


def collapsed_runs() -> list[dict[str, Any]]:
    return [result(score, collapsed=seed < 4) for seed, score in enumerate(around(0.6))]


@pytest.mark.parametrize(
    ("results", "word"),
    [
        (three_arms(0.5, 0.52, 0.6), "helps"),
        (three_arms(0.5, 0.52, 0.4), "hurts"),
        (three_arms(0.5, 0.6, 0.6), "better than plain only"),
        (three_arms(0.5, 0.6, 0.55), "worse than a control"),
        (three_arms(0.5, 0.4, 0.5), "no detectable difference"),
        (three_arms(0.5, 0.501, 0.5), "practically the same"),
        (three_arms(0.5, 0.52, 0.6, n_seeds=5), "underpowered"),
        (three_arms(0.5, 0.52, 0.6) | {"het-dropout": {75: collapsed_runs()}}, "collapsed"),
    ],
)
def test_every_word(results: Results, word: Verdict) -> None:
    summary = summarise(comparison(results))
    assert cell(summary, "het-dropout", 75).verdict == word
    assert cell(summary, "no-xstar", 75).verdict == "reference"


def test_a_cell_holds_the_numbers_its_verdict_rests_on() -> None:
    results = three_arms(0.5, 0.52, 0.6) | {"het-dropout/shuffled": {75: around(0.51)}}
    found = cell(summarise(comparison(results)), "het-dropout", 75)
    assert found.n_seeds == 8
    assert found.mean == pytest.approx(0.6)
    assert [d.other for d in found.differences] == [
        "no-xstar",
        "gaussian-dropout",
        "het-dropout/shuffled",
    ]
    assert found.deciding_control == "gaussian-dropout"
    assert found.differences[1].mean == pytest.approx(0.08)
    assert found.deciding == found.differences[1]
    low, high = found.differences[1].interval
    assert 0.075 < low < 0.08 < high < 0.085  # type: ignore[operator]
    assert found.p_value == pytest.approx(2 / 256 / 0.8)
    assert found.scores == dict(enumerate(around(0.6, own=True)))


def test_real_xstar_no_better_than_shuffled_gets_no_credit() -> None:
    results = three_arms(0.5, 0.52, 0.6) | {"het-dropout/shuffled": {75: around(0.6)}}
    summary = summarise(comparison(results))
    assert cell(summary, "het-dropout", 75).verdict == "better than plain only"
    assert cell(summary, "het-dropout/shuffled", 75).verdict == "better than plain"
    assert "but x* gets no credit" in summary.headline
    assert summary.statement.advice.startswith("Recommended: use no-xstar")  # nobody ships shuffled


def test_lower_is_better() -> None:
    loss = Metric("loss", higher_is_better=False)
    summary = summarise(comparison(three_arms(1.5, 1.4, 1.2), loss))
    found = cell(summary, "het-dropout", 75)
    assert found.verdict == "helps"
    assert found.mean == pytest.approx(1.2)
    assert found.differences[0].mean == pytest.approx(0.3)
    assert found.deciding_control == "gaussian-dropout"


def test_label_saving_is_measured_against_the_reference() -> None:
    curve = {100: 0.5, 200: 0.6, 400: 0.7}
    accuracy = comparison(
        {
            "no-xstar": {n: around(score) for n, score in curve.items()},
            "het-dropout": {n: around(score + 0.1) for n, score in curve.items()},
        }
    )
    loss = comparison(
        {
            "no-xstar": {n: around(1 - score) for n, score in curve.items()},
            "het-dropout": {n: around(0.9 - score) for n, score in curve.items()},
        },
        Metric("loss", higher_is_better=False),
    )
    for record in (accuracy, loss):
        savings = [cell(summarise(record), "het-dropout", n).label_saving for n in curve]
        assert [s.reach for s in savings if s] == ["measured", "measured", "beyond range"]
        assert [s.factor for s in savings if s and s.factor] == pytest.approx([2.0, 2.0])
        assert cell(summarise(record), "no-xstar", 100).label_saving is None


def test_pairs_use_the_seeds_both_arms_have_and_missing_runs_are_told() -> None:
    results = three_arms(0.5, 0.52, 0.6)
    results["gaussian-dropout"][75][3] = None
    summary = summarise(comparison(results))
    found = cell(summary, "het-dropout", 75)
    assert found.p_value == pytest.approx(2 / 128 / 0.8)  # seven pairs
    assert cell(summary, "gaussian-dropout", 75).n_missing == 1
    assert (summary.n_planned, summary.n_finished) == (24, 23)
    assert any("gaussian-dropout 1 at n = 75" in warning for warning in summary.warnings)


def test_a_corrupt_result_never_changes_a_verdict_silently() -> None:
    results = three_arms(0.5, 0.52, 0.6, n_seeds=6)
    assert cell(summarise(comparison(results)), "het-dropout", 75).verdict == "helps"
    results["no-xstar"][75][5] = result(float("nan"))
    summary = summarise(comparison(results))
    assert cell(summary, "het-dropout", 75).verdict == "undecided"
    assert any(w.startswith("runs/demo/no-xstar-75-5: ") for w in summary.warnings)


def test_a_diverged_run_counts() -> None:
    results = three_arms(0.5, 0.52, 0.6)
    results["het-dropout"][75][0] = result(0.1, status="diverged")
    summary = summarise(comparison(results))
    found = cell(summary, "het-dropout", 75)
    assert (found.n_seeds, found.n_diverged) == (8, 1)
    assert found.verdict == "no detectable difference"
    assert any(w.startswith("diverged runs") and "1 at n = 75" in w for w in summary.warnings)


def test_warnings_name_what_a_reader_must_know() -> None:
    results = three_arms(0.5, 0.05, 0.6, n_seeds=5)
    results["het-dropout"][75][0] = result(0.6, collapsed=True)
    record = comparison(results, warnings=["metrics.jsonl: line 3 is torn"])
    failed = replace(record.runs[0], result=None, failure="Traceback")
    record = replace(record, runs=[failed, *record.runs[1:]])
    summary = summarise(record)
    assert summary.failed == ("no-xstar-75-0",)
    assert summary.warnings == (
        "metrics.jsonl: line 3 is torn",
        "missing results (15 runs planned): no-xstar 1 at n = 75; "
        "arms are compared on their common seeds",
        "failed runs: no-xstar-75-0; see failure.txt in their folders",
        "collapsed runs (their noise no longer depends on x*): het-dropout 1 at n = 75",
        "underpowered (4 common seeds; a claim needs at least 6): gaussian-dropout at n = 75",
        "underpowered (5 common seeds; a claim needs at least 6): het-dropout at n = 75",
        "no better than a predictor that ignores x (score 10.0): gaussian-dropout at n = 75",
        "het-dropout has no control with replaced x*: a gain may come from the extra capacity; "
        "add `controls: [shuffled]`",
    )


def test_a_clean_comparison_has_no_warnings() -> None:
    shuffled = {75: around(0.5, own=True)}
    results = three_arms(0.5, 0.52, 0.6) | {"het-dropout/shuffled": shuffled}
    assert summarise(comparison(results)).warnings == ()


def test_planned_questions_before_the_first_run_have_no_answer() -> None:
    nothing: list[float | None] = [None] * 8
    record = comparison({arm: {75: nothing, 150: nothing} for arm in three_arms(0, 0, 0)})
    settings = {**record.settings, "questions": ["het-dropout@75", "het-dropout@mean"]}
    summary = summarise(replace(record, settings=settings))
    assert {c.verdict for c in summary.arms[2].cells} == {"not compared"}


def test_a_control_is_expected_to_collapse() -> None:
    shuffled = [result(score, collapsed=True) for score in around(0.5)]
    results = three_arms(0.5, 0.52, 0.6) | {"het-dropout/shuffled": {75: shuffled}}
    summary = summarise(comparison(results))
    assert cell(summary, "het-dropout/shuffled", 75).verdict == "collapsed"
    assert summary.warnings == ()


def test_no_better_than_trivial_when_lower_is_better() -> None:
    loss = Metric("loss", higher_is_better=False)  # the trivial predictor's loss is 0.1
    summary = summarise(comparison(three_arms(0.05, 0.1001, 0.04), loss))
    assert any(
        w.endswith("ignores x (score 0.100): gaussian-dropout at n = 75") for w in summary.warnings
    )


def test_without_a_plain_model_there_is_no_verdict() -> None:
    with pytest.raises(LupiError, match="no plain model"):
        summarise(comparison({"het-dropout": {75: around(0.6)}}))


def test_json_is_plain_and_repeatable() -> None:
    results = three_arms(0.5, 0.52, 0.6) | {"oracle": {75: [None] * 8}}
    record = replace(comparison(results), settings={"name": "boxes"}, folder=Path("runs/x"))
    document = summarise(record).to_dict()
    assert document == summarise(record).to_dict()
    assert document["comparison"] == "boxes"
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    oracle = document["arms"][-1]["cells"][0]
    assert oracle["mean"] is None
    assert oracle["differences"] == []
    assert oracle["label_saving"] == {
        "other": "no-xstar",
        "reach": "unknown",
        "factor": None,
        "interval": None,
    }


def test_an_arm_that_learned_almost_nothing_is_named() -> None:
    failed = three_arms(0.6, 0.6, 0.11)  # a predictor that ignores x scores 0.1
    found = " ".join(summarise(comparison(failed)).warnings)
    assert "close to a predictor that ignores x" in found
    fine = " ".join(summarise(comparison(three_arms(0.6, 0.6, 0.5))).warnings)
    assert "close to a predictor" not in fine
    assert "below the plain arm on every seed: het-dropout at n = 75" in fine


def test_an_arm_that_is_below_the_plain_one_on_some_seeds_is_not_named() -> None:
    mixed = three_arms(0.6, 0.6, 0.58)
    plain = mixed["no-xstar"][75]
    mixed["het-dropout"] = {75: [plain[0] + 0.02, *(score - 0.02 for score in plain[1:])]}
    assert "below the plain" not in " ".join(summarise(comparison(mixed)).warnings)


def test_scores_below_chance_are_explained() -> None:
    """Pairs of edited reviews, divided between training and test, scored 47 %."""
    below = " ".join(summarise(comparison(three_arms(0.05, 0.05, 0.06))).warnings)
    assert "clearly below a predictor that ignores x: no-xstar at n = 75" in below
    assert "name their column as `groups`" in below
    at_chance = " ".join(summarise(comparison(three_arms(0.098, 0.1, 0.1))).warnings)
    assert "clearly below" not in at_chance
