"""The overall state of a comparison, shown at the top of the page."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from lupi.verdict.results import Summary, Verdict, XstarVerdict
from lupi.verdict.roles import is_candidate
from lupi.verdict.words import MOST_INFORMATIVE_FIRST

State = XstarVerdict | Literal["mixed", "incomplete", "nothing to judge"]

LABELS: dict[State, str] = {
    "helps": "x* helps",
    "hurts": "x* hurts",
    "mixed": "x* helps in some cases and hurts in others",
    "worse than a control": "Worse than a control",
    "better than plain only": "Better than the plain model, but no credit for x*",
    "practically the same": "Practically the same",
    "undecided": "Undecided",
    "no detectable difference": "No detectable difference",
    "underpowered": "Underpowered: too few seeds",
    "not compared": "Not compared",
    "collapsed": "Collapsed: x* was not used",
    "incomplete": "Incomplete",
    "nothing to judge": "No verdict",
}

SIGNS: dict[State, str] = {
    "helps": "▲",
    "hurts": "▼",
    "mixed": "◆",
    "worse than a control": "▽",
    "better than plain only": "△",
    "practically the same": "≈",
    "undecided": "~",
    "no detectable difference": "·",
    "underpowered": "?",
    "not compared": "×",
    "collapsed": "∅",
    "incomplete": "…",
    "nothing to judge": "–",
}
"""Signs that make the state readable without colour."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A state with its label and sign."""

    state: State
    label: str
    sign: str


def outcome(summary: Summary) -> Outcome:
    """Summarise the verdicts of the candidates; with missing runs, the state is `incomplete`."""
    candidates = [arm for arm in summary.arms if is_candidate(arm)]
    words = {cell.verdict for arm in candidates for cell in arm.cells}
    words |= {arm.overall.verdict for arm in candidates if arm.overall is not None}
    state = _condense(words)
    label = LABELS[state]
    if summary.statement.is_confirmed is not None:
        label += f", {'' if summary.statement.is_confirmed else 'not '}confirmed"
    if summary.n_finished < summary.n_planned:
        so_far = f", so far: {label}" if state != "nothing to judge" and summary.n_finished else ""
        runs = f"{summary.n_finished} of {summary.n_planned} runs"
        state, label = "incomplete", f"{LABELS['incomplete']} ({runs}){so_far}"
    return Outcome(state, label, SIGNS[state])


def _condense(words: Collection[Verdict]) -> State:
    """Return the verdict of the headline, or `mixed` if x* both helps and hurts."""
    if "helps" in words and "hurts" in words:
        return "mixed"
    for word in MOST_INFORMATIVE_FIRST:
        if word in words:
            return word
    return "nothing to judge"
