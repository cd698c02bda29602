import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

import lupi
from lupi.errors import LupiError
from lupi.verdict.summary import summarise

from .comparisons import around, comparison

ARMS = ("plain", "noise", "ours")
SIZES = {100: 0.5, 200: 0.55, 400: 0.6}
GAINS = {"plain": 0.0, "noise": 0.02, "ours": 0.06}


def columns(
    n_seeds: int = 8, sizes: dict[int, float] = SIZES, more: dict[str, float] | None = None
) -> dict[str, Any]:
    rows = [
        (arm, size, seed, score)
        for size, mean in sizes.items()
        for arm, gain in {**GAINS, **(more or {})}.items()
        for seed, score in enumerate(around(mean + gain, n_seeds))
    ]
    return dict(
        zip(("arm", "size", "seed", "score"), map(list, zip(*rows, strict=True)), strict=True)
    )


def judge(scores: Any = None, **options: Any) -> Any:
    given = {"method": "ours", "controls": ["plain", "noise"], "metric": "accuracy"} | options
    return lupi.judge(columns() if scores is None else scores, **given)


def test_a_better_method_is_found_better() -> None:
    judgement = judge()
    assert judgement.verdicts == {("ours", size): "helps" for size in SIZES}
    assert judgement.verdicts_over_sizes == {"ours": "helps"}
    assert judgement.headline == (
        "With 400 training rows, ours raises accuracy from 60.0 % to 66.0 %. No control explains "
        "it: the closest, noise, reaches 62.0 %. Recommended: use ours."
    )
    assert judgement.statement.exact.startswith(
        "ours is better than every control at 3 of 3 sizes: +4.0 points of accuracy over the "
        "closest (noise) at n = 400, 95 % interval +3.8 to +4.2, p = 0.0098, 8 seeds; "
    )


def test_the_engine_says_the_same_of_the_same_scores() -> None:
    results = {
        "no-xstar": {100: around(0.5), 200: around(0.55)},
        "gaussian-dropout": {100: around(0.52), 200: around(0.56)},
        "het-dropout": {100: around(0.6), 200: around(0.57)},
    }
    summary = summarise(comparison(results))
    rows = [
        (arm, size, seed, score)
        for arm, by_size in results.items()
        for size, scores in by_size.items()
        for seed, score in enumerate(scores)
    ]
    names = ("arm", "size", "seed", "score")
    judged = lupi.judge(
        dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)),
        method="het-dropout",
        controls=["no-xstar", "gaussian-dropout"],
        metric="accuracy",
        design=comparison(results).design,
    )
    for ours, theirs in zip(summary.arms, judged.arms, strict=True):
        scored = [replace(cell, recorded={}) for cell in ours.cells]  # runs have other scores, too
        assert list(theirs.cells) == scored


def test_without_sizes() -> None:
    scores = columns(sizes={100: 0.5})
    del scores["size"]
    judgement = judge(scores)
    assert judgement.verdicts == {("ours", 0): "helps"}
    assert "n = " not in judgement.headline


def test_lower_may_be_better() -> None:
    scores = columns()
    scores["score"] = [1 - score for score in scores["score"]]
    judgement = judge(scores, metric="error", higher_is_better=False)
    assert set(judgement.verdicts.values()) == {"helps"}


def test_several_methods_have_controls_of_their_own() -> None:
    scores = columns(more={"theirs": 0.01, "theirs, shuffled": 0.01})
    judgement = judge(
        scores,
        method=["ours", "theirs"],
        controls={"ours": ["plain", "noise"], "theirs": ["plain", "theirs, shuffled"]},
    )
    assert judgement.verdicts["ours", 100] == "helps"
    theirs = next(arm for arm in judgement.arms if arm.name == "theirs")
    assert [d.other for d in theirs.cells[0].differences] == ["plain", "theirs, shuffled"]


def test_a_look_that_could_not_decide_costs_nothing() -> None:
    few = judge(columns(n_seeds=6))
    assert few.verdicts["ours", 100] == "helps"
    again = judge(columns(n_seeds=6), looks=[4, 6])
    assert again.verdicts["ours", 100] == "helps"


def test_judging_before_the_plan_is_preliminary() -> None:
    """Judging after every seed gave 9 to 14 % wrong claims, without a word."""
    early = judge(columns(n_seeds=6), looks=12)
    assert early.headline.startswith("Preliminary (6 of 12 seeds). ")
    late = judge(columns(n_seeds=8), looks=[4, 6])
    assert any("only the first 6 of 8 seeds are used" in warning for warning in late.warnings)


def test_seeds_count_in_the_order_of_arrival() -> None:
    """They were sorted, so seeds added below the first ones changed what an earlier look saw."""
    lead = {20: 0.1, 21: 0.11, 22: 0.09, 23: 0.12, 24: 0.1, 25: 0.13, 3: -0.5, 4: -0.6}
    table = {
        "arm": ["plain"] * 8 + ["ours"] * 8,
        "seed": [*lead, *lead],
        "score": [0.5] * 8 + [0.5 + more for more in lead.values()],
    }
    found = lupi.judge(table, method="ours", controls="plain", looks=[6, 8])
    assert found.verdicts["ours", 0] == "helps"  # at the first look, which stands


def test_a_missing_run_costs_a_seed_and_not_a_look() -> None:
    """One missing run of twelve threw the verdict back to the look before."""
    scores = columns(n_seeds=8)
    del_at = next(
        i
        for i, (arm, seed) in enumerate(zip(scores["arm"], scores["seed"], strict=True))
        if arm == "noise" and seed == 7
    )
    for values in scores.values():
        del values[del_at]
    judgement = judge(scores, looks=[6, 8])
    ours = next(arm for arm in judgement.arms if arm.name == "ours")
    assert [d.n_pairs for d in ours.cells[0].differences] == [8, 7]
    assert any(warning.startswith("missing runs: noise 1") for warning in judgement.warnings)


def test_questions_are_asked_in_their_order() -> None:
    scores = columns(6, more={f"other{i}": 0.001 * i for i in range(6)})
    methods = ["ours", *(f"other{i}" for i in range(6))]
    options = {"method": methods, "controls": ["plain"]}
    freely = judge(scores, **options).arms[2]
    asked = judge(scores, **options, questions=["ours@mean", "ours@400", "other0@100"]).arms[2]
    assert asked.overall.p_value <= freely.overall.p_value
    assert asked.overall.verdict == asked.cells[2].verdict == "helps"
    stopped = judge(scores, **options, questions=["other0@100"])
    assert set(stopped.verdicts.values()) & {"helps", "better than plain only"} == set()


@pytest.mark.parametrize(
    ("questions", "message"),
    [
        (["our@100"], "no arm is called `our`"),
        (["ours"], "give the size"),
        (["ours@300"], "the sizes are 100, 200, 400"),
        (["ours@100", "ours@100"], "each question once"),
    ],
)
def test_questions_that_do_not_exist_are_refused(questions: list[str], message: str) -> None:
    with pytest.raises(LupiError, match=message):
        judge(questions=questions)


def test_wide_gaps_between_sizes_are_said() -> None:
    wide = judge(columns(sizes={100: 0.5, 800: 0.6})).warnings
    assert any("wide gaps (between n = 100 and 800)" in warning for warning in wide)
    assert not any("wide gaps" in warning for warning in judge().warnings)


def test_overlap_widens() -> None:
    alone, shared = judge(), judge(design=lupi.Design(n_pool=500, test="fixed"))
    widths = [judged.arms[-1].cells[-1].deciding.interval for judged in (alone, shared)]
    assert widths[1][1] - widths[1][0] > 2 * (widths[0][1] - widths[0][0])


def test_a_frame_goes_in_and_comes_out() -> None:
    pd = pytest.importorskip("pandas")
    judgement = judge(pd.DataFrame(columns()))
    frame = judgement.to_frame()
    decided = frame[(frame.arm == "ours") & frame.is_deciding]
    assert list(decided["size"]) == [100, 200, 400]
    assert (decided.low > 0).all()
    assert list(decided.against) == ["noise"] * 3


def test_numbers_of_a_frame_become_plain_ones() -> None:
    pd = pytest.importorskip("pandas")
    document = judge(pd.DataFrame(columns())).to_dict()
    assert json.loads(json.dumps(document))["arms"][0]["cells"][0]["size"] == 100


def test_it_can_be_read_anywhere() -> None:
    judgement = judge()
    text, html = str(judgement), judgement._repr_html_()
    for part in (judgement.headline, "better than plain", "noise"):
        assert part in text
        assert part in html
    assert json.loads(json.dumps(judgement.to_dict()))["headline"] == judgement.headline


def test_a_missing_score_is_a_missing_run() -> None:
    scores = columns()
    scores["score"][0] = float("nan")
    judgement = judge(scores)
    (warning,) = judgement.warnings
    assert warning.startswith("missing runs: plain 1 at n = 100")
    assert judgement.arms[0].cells[0].n_missing == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "our"}, "no arm is called `our`"),
        ({"controls": ["plain", "nois"]}, "no arm is called `nois`"),
        ({"controls": []}, "ours has none; give at least the plain reference"),
        ({"controls": ["plain", "ours"]}, "ours can't be a control of itself"),
        ({"looks": [8, 6]}, "looks: expected increasing numbers of seeds"),
        ({"looks": True}, r"looks: expected increasing numbers of seeds, got \[True\]"),
        (
            {"method": ["ours", "noise"], "controls": {"ours": ["plain"], "noise": ["ours"]}},
            "the first control is the reference, the same for all methods",
        ),
    ],
)
def test_mistakes_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(LupiError, match=message):
        judge(**options)


def test_wrong_columns_are_named() -> None:
    with pytest.raises(LupiError, match="no column 'seed'"):
        judge({"arm": ["a"], "score": [1.0], "sede": [0]})
    with pytest.raises(LupiError, match="a size is a number of training rows; got 'large'"):
        judge(columns() | {"size": ["large"] * len(columns()["arm"])})
    scores = columns()
    scores["score"] = scores["score"][:-1]
    with pytest.raises(LupiError, match="different lengths"):
        judge(scores)
    twice = {name: [*values, values[0]] for name, values in columns().items()}
    with pytest.raises(LupiError, match="two rows for arm plain, size 100, seed 0"):
        judge(twice)


def test_it_needs_no_torch() -> None:
    code = (
        "import sys, lupi; lupi.judge; sys.exit('torch' in sys.modules or 'pandas' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
