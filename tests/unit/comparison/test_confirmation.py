"""`--confirm`: fresh seeds for the arm that helps and its controls, judged on these alone."""

import html
import re
from pathlib import Path
from typing import Any

import pytest
from test_until_decided import large, made_up

from lupi.comparison.phases import FIRST_FRESH_SEED
from lupi.interface.result import Comparison
from lupi.interface.running import run_comparison
from lupi.records import read_comparison
from lupi.report.tables import FORMATS
from small_comparison import RAW

ARMS = {**RAW["arms"], "oracle": {"method": "oracle"}, "distillation": {"method": "distillation"}}


def lucky(settings: dict[str, Any]) -> float:
    """Return a gain that fresh seeds do not have."""
    return large(settings) if settings["seed"] < FIRST_FRESH_SEED else 0.0


def at_one_size(settings: dict[str, Any]) -> float:
    return large(settings) if settings["size"] == 20 else 0.0


def confirmed(folder: Path, gain: Any, **changes: Any) -> Comparison:
    raw = {**RAW, "arms": ARMS, "sizes": [20, 40], "seeds": 8, **changes}
    return run_comparison(raw, folder, made_up(gain), confirm=True)


def test_the_winner_and_its_controls_get_fresh_seeds(tmp_path: Path) -> None:
    found = confirmed(tmp_path, at_one_size)
    fresh = read_comparison(tmp_path).confirmation
    assert fresh is not None
    assert {arm.name for arm in fresh.arms} == {"no-xstar", "het-dropout", "het-dropout/shuffled"}
    assert {run.plan.size for run in fresh.runs} == {20}
    seeds = {run.plan.seed for run in fresh.runs}
    assert seeds == set(range(FIRST_FRESH_SEED, FIRST_FRESH_SEED + 8))
    assert len(fresh.finished) == 3 * 8
    assert not seeds & {run.plan.seed for run in found.record.runs}
    assert found.verdict == "x* helps, confirmed"
    words = found.summary.statement
    assert re.search(r" Confirmed on 8 fresh seeds: x\* helps het-dropout: \+\d", words.exact)
    assert not any("overstated" in note for note in words.notes)
    assert found.summary.confirmation is not None
    (cell,) = found.summary.confirmation.arms[1].cells
    assert set(cell.scores) == seeds


def test_fresh_seeds_may_not_confirm_it(tmp_path: Path) -> None:
    found = confirmed(tmp_path, lucky)
    assert found.verdict == "x* helps, not confirmed"
    assert "fresh seeds did not confirm it" in found.headline
    assert "Not confirmed on 8 fresh seeds: " in found.summary.statement.exact
    assert any("overstated" in note for note in found.summary.statement.notes)


def test_without_a_winner_nothing_is_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    confirmed(tmp_path, lambda settings: 0.0)
    assert "nothing to confirm" in capsys.readouterr().err
    assert read_comparison(tmp_path).confirmation is None


def test_a_confirmation_of_another_question_is_not_shown(tmp_path: Path) -> None:
    confirmed(tmp_path, at_one_size)
    found = confirmed(tmp_path, large, sizes=[40, 60])
    assert "confirmed" in found.verdict  # the new winner was confirmed instead
    other = run_comparison({**RAW, "sizes": [20], "seeds": 8}, tmp_path, made_up(large))
    assert other.summary.statement.is_confirmed is None


def test_all_outputs_have_the_same_sentences(tmp_path: Path) -> None:
    found = confirmed(tmp_path, lucky)
    words = found.summary.statement
    page = html.unescape((tmp_path / "report.html").read_text(encoding="utf-8"))
    document = found.to_dict()
    assert document["headline"] == found.headline == f"{words.headline} {words.advice}"
    assert document["statement"]["exact"] == words.exact
    terminal = re.sub(r"\s+", " ", str(found))
    markdown = FORMATS["markdown"](found.summary).replace("\\", "")
    for text in (found.verdict, found.headline, words.exact, *words.notes):
        assert text in page
        assert text in terminal
    for text in (found.headline, words.exact):
        assert text in markdown
    for warning in found.warnings:
        assert warning in page
        assert warning in terminal
    assert document["confirmation"]["statement"]["exact"] in words.exact.replace(
        "het-dropout at 1 of 1 sizes", "het-dropout"
    )
