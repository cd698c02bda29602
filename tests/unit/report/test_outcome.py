from typing import get_args

import pytest
from summaries import arm, cell, summary

from lupi.report.outcome import STATES, State, outcome
from lupi.verdict.results import Verdict


@pytest.mark.parametrize(
    ("words", "state"),
    [
        (("helps", "no detectable difference"), "helps"),
        (("hurts", "underpowered"), "hurts"),
        (("helps", "hurts"), "mixed"),
        (("better than plain only", "practically the same"), "better than plain only"),
        (("worse than a control", "not run"), "worse than a control"),
        (("collapsed", "no detectable difference"), "no detectable difference"),
        (("collapsed", "underpowered"), "collapsed"),
        (("underpowered", "underpowered"), "underpowered"),
    ],
)
def test_state_of_a_finished_comparison(words: tuple[Verdict, Verdict], state: State) -> None:
    cells = [cell(size, 0.6, word) for size, word in zip((100, 200), words, strict=True)]
    found = outcome(summary(arm("het-dropout", *cells), sizes=(100, 200)))
    assert found.state == state
    assert found.label == STATES[state].label


def test_controls_do_not_decide() -> None:
    control = arm("het-dropout/shuffled", cell(verdict="better than plain"), control="shuffled")
    plain = arm("gaussian-dropout", cell(verdict="worse than plain"), uses_xstar=False)
    assert outcome(summary(control, plain)).state == "nothing to judge"


def test_missing_runs_make_the_verdict_provisional() -> None:
    found = outcome(summary(arm("het-dropout", cell(verdict="helps")), n_finished=12))
    assert found.state == "incomplete"
    assert found.label == "Incomplete (12 of 16 runs), so far: x* helps"


def test_every_state_has_words_and_a_sign_of_its_own() -> None:
    states = {state for part in get_args(State) for state in get_args(part)}
    assert set(STATES) == states
    assert len({look.sign for look in STATES.values()}) == len(states)
