from dataclasses import replace
from pathlib import Path
from typing import Any

from lupi.records import Candidate, ComparisonRecord, Metric, RunRecord, planned_trials
from lupi.verdict.summary import choose, judge_tuning, summarise

from .comparisons import around, comparison


def candidates(arm: str, n: int) -> list[Candidate]:
    return [
        Candidate(arm, i, {"settings.beta": i} if i else {}, 150, [10_000, 10_001], ids)
        for i in range(n)
        for ids in [[f"{arm}-{i}-a", f"{arm}-{i}-b"]]
    ]


def trials(
    of: list[Candidate], scores: dict[str, Any], metric: str = "accuracy"
) -> list[RunRecord]:
    return [
        RunRecord(
            plan,
            Path(plan.run_id),
            {"format": 1, "metrics": {"val": {metric: scores[plan.run_id]}}}
            if plan.run_id in scores
            else None,
        )
        for plan in planned_trials(of)
    ]


def names(chosen: list[Candidate]) -> list[str]:
    return [candidate.name for candidate in chosen if candidate.chosen]


SCORES = {"a-0-a": 0.5, "a-0-b": 0.6, "a-1-a": 0.9, "a-1-b": 0.1, "a-2-a": 0.6, "a-2-b": 0.6}


def test_the_best_mean_is_chosen() -> None:
    of = candidates("a", 3)
    assert names(choose(of, trials(of, SCORES), Metric("accuracy"))) == ["a #2"]
    lower = choose(of, trials(of, SCORES, "loss"), Metric("loss", higher_is_better=False))
    assert names(lower) == ["a #1"]


def test_of_equals_the_first_is_chosen() -> None:
    of = candidates("a", 3)
    same = dict.fromkeys(SCORES, 0.5)
    assert names(choose(of, trials(of, same), Metric("accuracy"))) == ["a #0"]


def test_a_candidate_without_a_score_is_never_better() -> None:
    of = candidates("a", 2)
    scores = {"a-0-a": 0.1, "a-0-b": 0.1, "a-1-a": 0.9, "a-1-b": None}
    assert names(choose(of, trials(of, scores), Metric("accuracy"))) == ["a #0"]


def record(**changes: Any) -> ComparisonRecord:
    return replace(
        comparison({arm: {75: around(0.5)} for arm in ("no-xstar", "het-dropout/shuffled")}),
        **changes,
    )


def tuned(scores: dict[str, Any] = SCORES, chosen: bool = True, **tuning: Any) -> ComparisonRecord:
    of = candidates("a", 3)
    runs = trials(of, scores)
    if chosen:
        of = choose(of, runs, Metric("accuracy"))
    return record(candidates=of, trials=runs, settings={"tuning": tuning})


def test_the_trials_are_part_of_the_answer() -> None:
    summary = summarise(tuned())
    assert summary.tuning is not None
    assert (summary.tuning.size, summary.tuning.n_seeds) == (150, 2)
    assert [t.score for t in summary.tuning.candidates] == [0.55, 0.5, 0.6]
    assert [t.chosen for t in summary.tuning.candidates] == [False, False, True]
    assert summary.to_dict()["tuning"]["candidates"][1]["changes"] == {"settings.beta": 1}
    assert not any("tun" in warning for warning in summary.warnings)


def test_an_untuned_comparison_says_so() -> None:
    untuned = record(settings={})
    assert judge_tuning(untuned) is None
    assert [w for w in summarise(untuned).warnings if w.startswith("untuned: differences may come")]


def test_a_sentence_stands_for_tuning_elsewhere() -> None:
    summary = summarise(record())
    assert summary.tuning is not None
    assert summary.tuning.note == "by hand"
    assert not any("tun" in warning for warning in summary.warnings)


def test_unfinished_tuning_is_a_warning() -> None:
    summary = summarise(tuned({"a-0-a": 0.5}, chosen=False))
    assert summary.tuning is not None
    assert [t.n_finished for t in summary.tuning.candidates] == [1, 0, 0]
    assert any(warning.startswith("tuning is unfinished") for warning in summary.warnings)


def test_unfair_tuning_is_a_warning() -> None:
    assert any("which favours x*" in w for w in summarise(tuned(controls="shared")).warnings)
    of = [*candidates("a", 3), *candidates("b", 2)]
    unequal = summarise(record(candidates=of, trials=trials(of, SCORES), settings={}))
    assert any(w == "unequal numbers of tuning candidates: a 3, b 2" for w in unequal.warnings)


def test_a_sentence_about_tuning_silences_no_warning_about_controls() -> None:
    def warned(controls: Any) -> bool:
        arms = {"no-xstar": {}, "het-dropout": {"controls": controls}}
        found = summarise(record(settings={"tuning": "the best of six", "arms": arms})).warnings
        return any(w.endswith("best for the control: het-dropout/shuffled") for w in found)

    assert warned(["shuffled"])
    assert warned(None)  # the default controls of the method
    assert not warned({"shuffled": {"settings": {"prior": 0.7}}})
    assert not warned({"shuffled": {}})  # tuned, with the same result


def test_a_trial_is_no_result_of_the_comparison() -> None:
    plain, with_trials = summarise(record()), summarise(tuned())
    assert with_trials.n_planned == plain.n_planned
    assert with_trials.arms == plain.arms
